//! Taking up a lock that was left.

use std::sync::Arc;

use tracing::Instrument;

use crate::{
    Attempt, Error, Held, Instant, Kind, LockGuard, Request, Result, Ticket, drain::Stay,
    locks::Client, owned::Owned, trace,
};

/// One attempt to adopt, owned so that dropping it is safe anywhere.
pub(crate) async fn adopt(client: Arc<Client>, ticket: Ticket) -> Result<LockGuard> {
    let guarantees = client.driver.guarantees();
    if ticket.store() != guarantees.store {
        return Err(Error::InvalidOption {
            option: "ticket".to_owned(),
            value: format!("a ticket of {}", ticket.store()),
            allowed: format!("this client is connected to {}", guarantees.store),
        });
    }
    guarantees.check_ttl(ticket.ttl())?;
    // Counted before the store is asked: a drain that cut an adoption off would free the lock.
    let Some(stay) = client.drain.enter() else { return Err(client.drained_error()) };
    let attempt = Attempt::of(&client.heard);
    let (ttl, home, waiting) = (ticket.ttl(), client.home.clone(), client.clone());
    let span = trace::attempt(ticket.name(), guarantees.store, attempt.id());
    let work = take_up(client, ticket, attempt.clone(), stay).instrument(span);
    let adopted = Owned::new(&home, work, move || attempt.cancel())
        .collected_within(ttl, |adopted| Err(adopted?.not_collected()))
        .await
        .map_err(|error| waiting.of_newcomer(error));
    let guard = adopted.map_err(|error| waiting.told("adopt", error))?;
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
    let (name, ttl, term) = (ticket.name().clone(), ticket.ttl(), ticket.term());
    let (id, hold_left) = (attempt.id(), ticket.hold_left());
    let mut request = Request::new(name.clone(), ttl);
    request.term = term;
    match client.driver.adopt(request, attempt, ticket).await {
        Ok(lease) => {
            client.heard.hear();
            trace::adopted(&name, id, lease.token());
            let cap = hold_left.map_or(Instant::NEVER, |left| client.clock.now() + left);
            // For a caller who has left, the guard is dropped with the answer: released at once.
            let held = Held::begin(client, name, Kind::Exclusive, lease, ttl, term, cap);
            Ok(LockGuard::counted(held, stay))
        }
        Err(error) => {
            trace::refused(&name, id, &error);
            Err(error)
        }
    }
}
