//! Adopting a lock that was detached.

use std::sync::Arc;

use tracing::Instrument;

use crate::{
    Attempt, BoxFuture, Error, Held, LockGuard, Locks, LossReason, Request, Result, Ticket,
    api::client::Client,
    driver::trace,
    keep::errors::invalid,
    machine::{drain::Stay, finish::Finishing},
};

impl Locks {
    /// Adopts a lock that was [detached](crate::LockGuard::detach), here or by another process: the
    /// same grant with the same fencing token, renewed from now on as before. A ticket can be used
    /// once, within one TTL after the lock was detached. The store must be the one that granted the
    /// lock, with the same layout and prefix.
    ///
    /// Between detach and adoption no process holds the lock, and no other client is granted it. So
    /// the state that the work left behind is still there for the adopter, and for no other client.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// let ticket = std::env::var("DEPLOY_TICKET")?.parse()?;
    /// let guard = locks.adopt(&ticket).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] with [`LossReason::Adopted`](crate::LossReason::Adopted) if the ticket has
    ///   been used, and with [`LossReason::TicketOver`](crate::LossReason::TicketOver) if the lock
    ///   is not there any more: its TTL was over, it was revoked, its adopter released it, or the
    ///   [token floor](Self::raise_token_floor) was raised above its token. Acquire it anew then.
    /// - [`Error::InvalidOption`] if the ticket is of another store.
    /// - [`Error::Unsupported`] if the store cannot adopt.
    /// - [`Error::Unavailable`] if the store did not answer for one TTL: the lock is then free, or
    ///   soon will be, also if the request took effect. If it did not, the ticket is good until then.
    /// - [`Error::Denied`], [`Error::Rejected`], [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives an adopted lock back in the background. A future that is not
    /// polled behaves like the one of [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub fn adopt(&self, ticket: &Ticket) -> BoxFuture<'static, Result<LockGuard>> {
        Box::pin(adopt(self.client.clone(), ticket.clone()))
    }
}

/// One attempt to adopt, owned so that dropping it is safe anywhere.
pub(crate) async fn adopt(client: Arc<Client>, ticket: Ticket) -> Result<LockGuard> {
    let guarantees = client.driver.guarantees();
    if ticket.store() != guarantees.store {
        let value = format!("a ticket of {}", ticket.store());
        let allowed = format!("this client is connected to {}", guarantees.store);
        return Err(invalid("ticket", value, allowed));
    }
    guarantees.check_ttl(ticket.ttl())?;
    // Counted before the store is asked: a drain that cut an adoption off would free the lock.
    let Some(stay) = client.drain.enter() else { return Err(client.drained_error()) };
    let attempt = Attempt::of(&client.heard);
    let (ttl, home, waiting) = (ticket.ttl(), client.home.clone(), client.clone());
    let name = ticket.name().clone();
    let span = trace::attempt(ticket.name(), guarantees.store, attempt.id());
    let work = take_up(client, ticket, attempt.clone(), stay).instrument(span);
    let adopted = Finishing::new(&home, work)
        .cancelling(attempt)
        .collected_within(ttl, |adopted| Err(adopted?.not_collected()))
        .await
        .map_err(|error| waiting.of_newcomer(error));
    let guard = adopted.map_err(|error| waiting.failed("adopt", error).about(&name))?;
    // Lost since it was adopted, while the caller did not poll.
    guard.check().map_err(|lost| waiting.of_newcomer(lost))?;
    Ok(guard)
}

async fn take_up(
    client: Arc<Client>,
    ticket: Ticket,
    attempt: Attempt,
    stay: Stay,
) -> Result<LockGuard> {
    let (id, hold_left) = (attempt.id(), ticket.hold_left());
    let mut request = Request::new(ticket.name().clone(), ticket.ttl());
    request.term = ticket.term();
    let adopted = client.driver.adopt(request.clone(), attempt, ticket).await;
    let name = &request.name;
    match adopted {
        Ok(lease) => {
            client.heard.hear();
            trace::adopted(name, id, lease.token());
            // If the caller has left, the guard is dropped with the result: the lock is released at
            // once.
            let held = Held::begin(client, &request, lease, hold_left);
            Ok(LockGuard::counted(held, stay))
        }
        Err(error) => {
            let error = match error {
                // The lock went while it was taken up, before its adopter held it.
                Error::PlaceLost { .. } => {
                    Error::Lost { name: name.clone(), reason: LossReason::TicketOver }
                }
                error => error,
            };
            trace::refused(name, id, &error);
            client.after_close().await;
            Err(error)
        }
    }
}
