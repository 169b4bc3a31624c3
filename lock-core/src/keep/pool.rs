//! The sessions of a client: one for each TTL in use, opened when it is first asked for.
//!
//! A store's session has one TTL, and all locks with that TTL depend on it. The pool keeps the
//! sessions, and callers that need the same session share one opening. It sends nothing: a driver
//! opens sessions in a task of its own, with the [`Maker`] that the first caller gets.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    Error, Result,
    duration::shown,
    keep::{
        errors::invalid,
        opening::{Opening, OpeningWait},
        poison::lock,
    },
};

/// A session as the pool sees it.
pub trait Pooled {
    /// The session's TTL.
    fn ttl(&self) -> Duration;

    /// Whether it is over: another session is then opened in its place.
    fn is_over(&self) -> bool;
}

/// The sessions of one client.
#[derive(Debug)]
pub struct Pool<S, E> {
    state: Arc<Mutex<State<S, E>>>,
    store: &'static str,
    most: usize,
}

#[derive(Debug)]
struct State<S, E> {
    closed: bool,
    by_ttl: HashMap<Duration, Slot<S, E>>,
    /// Sessions that take no new locks.
    retired: Vec<Weak<S>>,
}

#[derive(Debug)]
enum Slot<S, E> {
    Open(Arc<S>),
    Opening(watch::Sender<Opening<S, E>>),
}

/// The state of the session of a TTL.
#[derive(Debug)]
pub enum Found<S, E> {
    /// It is open.
    Open(Arc<S>),
    /// It is being opened.
    Opening(OpeningWait<S, E>),
    /// It is to be opened by the caller that got this.
    Wanted {
        /// The right to open it.
        maker: Maker<S, E>,
        /// The result of the opening.
        wait: OpeningWait<S, E>,
        /// A session that made room for it. It is not in the pool any more, and must be ended.
        instead_of: Option<Arc<S>>,
    },
}

/// The right to open a session. If it is dropped before it is [done](Self::done), by a panic or the
/// end of its runtime, the opening ends, and the waiting callers may begin another one.
#[derive(Debug)]
pub struct Maker<S, E> {
    state: Weak<Mutex<State<S, E>>>,
    ttl: Duration,
    tell: watch::Sender<Opening<S, E>>,
}

impl<S: Pooled, E> Pool<S, E> {
    /// A pool without sessions. At most `most` sessions at a time take new locks. `store` is for
    /// errors.
    pub fn new(store: &'static str, most: usize) -> Self {
        let state = State { closed: false, by_ttl: HashMap::new(), retired: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), store, most }
    }

    /// The session of a TTL, or the way to get it. Refuses a TTL if there are too many sessions,
    /// all of them in use.
    pub fn get(&self, ttl: Duration) -> Result<Found<S, E>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Error::closed(self.store));
        }
        let instead_of = match state.by_ttl.get(&ttl) {
            Some(Slot::Opening(tell)) => return Ok(Found::Opening(OpeningWait(tell.subscribe()))),
            Some(Slot::Open(session)) if session.is_over() => Some(session.clone()),
            Some(Slot::Open(session)) => return Ok(Found::Open(session.clone())),
            None => state.make_room(ttl, self.most)?,
        };
        let (tell, wait) = watch::channel(Opening::Trying(None));
        state.by_ttl.insert(ttl, Slot::Opening(tell.clone()));
        let maker = Maker { state: Arc::downgrade(&self.state), ttl, tell };
        Ok(Found::Wanted { maker, wait: OpeningWait(wait), instead_of })
    }

    /// Any open session.
    pub fn any(&self) -> Option<Arc<S>> {
        lock(&self.state).open().find(|session| !session.is_over()).cloned()
    }

    /// All sessions, also those that take no new locks.
    pub fn all(&self) -> Vec<Arc<S>> {
        lock(&self.state).all()
    }

    /// Gives no new locks to a session. From then on it lives as long as others keep it.
    pub fn retire(&self, session: &Arc<S>) {
        let (mut state, ttl) = (lock(&self.state), session.ttl());
        if state.by_ttl.get(&ttl).is_some_and(|slot| slot.is(session)) {
            state.by_ttl.remove(&ttl);
            state.retired.retain(|other| other.strong_count() > 0);
            state.retired.push(Arc::downgrade(session));
        }
    }

    /// Forgets a session that has ended.
    pub fn forget(&self, session: &Arc<S>) {
        let mut state = lock(&self.state);
        state.by_ttl.retain(|_, slot| !slot.is(session));
        state.retired.retain(|retired| !std::ptr::eq(retired.as_ptr(), Arc::as_ptr(session)));
    }

    /// Closes the pool, and forgets all sessions; the driver ends the returned ones.
    pub fn close(&self) -> Vec<Arc<S>> {
        let mut state = lock(&self.state);
        let all = state.all();
        *state = State { closed: true, by_ttl: HashMap::new(), retired: Vec::new() };
        all
    }
}

/// The error for a caller with a TTL that the store does not grant.
pub fn other_ttl(asked: Duration, granted: Duration) -> Error {
    invalid("ttl", shown(asked), format!("the store grants {} instead", shown(granted)))
}

impl<S, E> Slot<S, E> {
    fn open(&self) -> Option<&Arc<S>> {
        match self {
            Self::Open(session) => Some(session),
            Self::Opening(_) => None,
        }
    }

    fn is(&self, session: &Arc<S>) -> bool {
        self.open().is_some_and(|open| Arc::ptr_eq(open, session))
    }
}

impl<S, E> State<S, E> {
    /// Ends the opening. The slot may belong to another opening by now.
    fn leave(&mut self, ttl: Duration, tell: &watch::Sender<Opening<S, E>>) {
        if let Some(Slot::Opening(current)) = self.by_ttl.get(&ttl)
            && current.same_channel(tell)
        {
            self.by_ttl.remove(&ttl);
        }
    }
}

impl<S: Pooled, E> State<S, E> {
    fn open(&self) -> impl Iterator<Item = &Arc<S>> {
        self.by_ttl.values().filter_map(Slot::open)
    }

    fn all(&self) -> Vec<Arc<S>> {
        self.open().cloned().chain(self.retired.iter().filter_map(Weak::upgrade)).collect()
    }

    /// Takes out an idle session if there are too many. Sessions are handed out only under the
    /// pool's mutex, so a session that the pool alone has is idle.
    fn make_room(&mut self, ttl: Duration, most: usize) -> Result<Option<Arc<S>>> {
        if self.by_ttl.len() < most {
            return Ok(None);
        }
        let is_idle = |session: &&Arc<S>| session.is_over() || Arc::strong_count(session) == 1;
        let idle = self.open().find(is_idle).map(|session| session.ttl());
        match idle.and_then(|idle| self.by_ttl.remove(&idle)) {
            Some(slot) => Ok(slot.open().cloned()),
            None => {
                let allowed = format!(
                    "each TTL needs a session of its own, and {most} others are in use; take one \
                     of theirs"
                );
                Err(invalid("ttl", shown(ttl), allowed))
            }
        }
    }
}

impl<S: Pooled, E> Maker<S, E> {
    /// Reports to the waiting callers why a try failed. Another try follows.
    pub fn failed(&self, failure: E) {
        self.tell.send_replace(Opening::Trying(Some(failure)));
    }

    /// Waits until no caller waits for the session. The opening is over then.
    pub async fn deserted(&self) {
        loop {
            self.tell.closed().await;
            let Some(state) = self.state.upgrade() else { return };
            let mut state = lock(&state);
            // Under the mutex that callers take to join.
            if self.tell.receiver_count() == 0 {
                return state.leave(self.ttl, &self.tell);
            }
        }
    }

    /// Ends the opening with its result. Returns whether a session is in the pool now. A session
    /// that is not, because its TTL differs or the pool is closed, must be ended by the caller. A
    /// closed pool reports no result.
    pub fn done(self, opened: Result<Arc<S>, E>) -> bool {
        let Some(state) = self.state.upgrade() else { return false };
        let mut state = lock(&state);
        state.leave(self.ttl, &self.tell);
        let filed = match &opened {
            Ok(session) if !state.closed && session.ttl() == self.ttl => {
                state.by_ttl.insert(self.ttl, Slot::Open(session.clone()));
                true
            }
            _ => false,
        };
        if !state.closed {
            self.tell.send_replace(Opening::Done(opened));
        }
        filed
    }
}

impl<S, E> Drop for Maker<S, E> {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            lock(&state).leave(self.ttl, &self.tell);
        }
    }
}

#[cfg(test)]
mod tests;
