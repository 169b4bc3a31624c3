//! Removing what attempts leave behind, several at a time.
//!
//! While few removing requests are on their way, each departure gets a request of its own. Others
//! wait, and go together when one of the requests is answered. A departure that the store does not
//! answer is tried again until its deadline.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use crate::{
    Error, Instant, Result,
    keep::{errors::again, poison::lock},
};

/// The departures that wait for a request.
#[derive(Debug)]
pub struct Departures<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<Departure<T>>,
    /// How many requests are on their way.
    requests: usize,
}

/// Entries that are removed together.
#[derive(Debug)]
pub struct Departure<T> {
    /// The entries.
    pub what: T,
    /// How many attempts they belong to.
    pub count: usize,
    /// Until when it is tried.
    pub deadline: Instant,
    /// Gets the result; `None` for a cleanup in the background.
    pub reply: Option<oneshot::Sender<Result<()>>>,
}

impl<T> Departure<T> {
    /// Reports the result. A caller that has left does not get it.
    pub fn tell(self, result: Result<()>) {
        if let Some(reply) = self.reply {
            let _ = reply.send(result);
        }
    }
}

impl<T> Default for Departures<T> {
    fn default() -> Self {
        Self(Mutex::new(State { waiting: VecDeque::new(), requests: 0 }))
    }
}

impl<T> Departures<T> {
    /// Takes a departure in. Returns whether the caller must send a request: fewer than `most` are
    /// on their way. The new request counts from now on.
    pub fn admit(&self, departure: Departure<T>, most: usize) -> bool {
        let mut state = lock(&self.0);
        state.waiting.push_back(departure);
        let free = state.requests < most;
        state.requests += usize::from(free);
        free
    }

    /// Takes the departures for the next request: as many as have room in it, and at least one if
    /// there is any.
    pub fn take(&self, room: usize) -> Vec<Departure<T>> {
        let mut state = lock(&self.0);
        let (mut taken, mut room) = (Vec::new(), room);
        while let Some(next) = state.waiting.front() {
            if !taken.is_empty() && next.count > room {
                break;
            }
            room = room.saturating_sub(next.count);
            taken.extend(state.waiting.pop_front());
        }
        taken
    }

    /// A request has failed. If the store did not answer, departures with time left at `now` wait
    /// for another request; the others get the error.
    pub fn failed(&self, leaving: Vec<Departure<T>>, why: &Error, now: Instant) {
        let outage = why.is_unavailable();
        let (later, over): (Vec<_>, Vec<_>) =
            leaving.into_iter().partition(|departure| outage && departure.deadline > now);
        lock(&self.0).waiting.extend(later);
        over.into_iter().for_each(|departure| departure.tell(Err(again(why))));
    }

    fn end_request(&self, anyway: bool) -> bool {
        let mut state = lock(&self.0);
        let over = anyway || state.waiting.is_empty();
        state.requests -= usize::from(over);
        over
    }
}

/// A session that removes what attempts leave.
pub trait Removes: Send + Sync + Sized + 'static {
    /// The entries of one departure.
    type Leaving: Send;

    /// The departures that wait for a request.
    fn departures(&self) -> &Departures<Self::Leaving>;

    /// Sends one request for the next departures, and reports the result to them.
    fn remove_next(self: &Arc<Self>) -> impl Future<Output = ()> + Send;
}

/// One of the requests on their way. It ends when this is dropped, also with its future.
#[derive(Debug)]
pub struct Sending<S: Removes> {
    session: Arc<S>,
    over: bool,
}

impl<S: Removes> Sending<S> {
    /// Takes a departure in; `None` if another request on its way will be followed by one for it.
    pub fn admit(session: &Arc<S>, departure: Departure<S::Leaving>, most: usize) -> Option<Self> {
        let sends = session.departures().admit(departure, most);
        sends.then(|| Self { session: session.clone(), over: false })
    }

    /// Sends one request. If more departures have come meanwhile, sends others in the background.
    /// If this is dropped, its departures are left to expire, without a result.
    pub async fn run(mut self) {
        self.session.remove_next().await;
        if !self.is_over() {
            tokio::spawn(self.run_all());
        }
    }

    /// Sends requests until no departure waits for one.
    pub async fn run_all(mut self) {
        while !self.is_over() {
            self.session.remove_next().await;
        }
    }

    fn is_over(&mut self) -> bool {
        self.over = self.session.departures().end_request(false);
        self.over
    }
}

impl<S: Removes> Drop for Sending<S> {
    fn drop(&mut self) {
        if !self.over {
            self.session.departures().end_request(true);
        }
    }
}

#[cfg(test)]
mod tests;
