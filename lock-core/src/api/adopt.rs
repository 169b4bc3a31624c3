//! Taking up a lock that was left.

use std::sync::Arc;

use tracing::Instrument;

use crate::{
    Attempt, Error, Instant, Kind, LockGuard, Request, Result, Ticket, api::locks::Client,
    driver::trace, machine::finish::Owned,
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
    let attempt = Attempt::of(&client.heard);
    let (ttl, home, waiting) = (ticket.ttl(), client.home.clone(), client.clone());
    let span = trace::attempt(ticket.name(), guarantees.store, attempt.id());
    let work = take_up(client, ticket, attempt.clone()).instrument(span);
    let owned = Owned::new(&home, work, move || attempt.cancel())
        .collected_within(ttl, |adopted| Err(adopted?.not_collected()));
    let adopted = waiting.unless_drained(owned).await;
    let guard = adopted.map_err(|error| waiting.told("adopt", error))?;
    // Lost since it was adopted, while the caller did not poll.
    guard.check().map_err(|lost| waiting.of_newcomer(lost))?;
    Ok(guard)
}

async fn take_up(client: Arc<Client>, ticket: Ticket, attempt: Attempt) -> Result<LockGuard> {
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
            LockGuard::new(client, name, Kind::Exclusive, lease, ttl, term, cap)
        }
        Err(error) => {
            trace::refused(&name, id, &error);
            Err(error)
        }
    }
}
