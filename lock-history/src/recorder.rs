//! Takes events during a run.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::{Event, Fault, Header, History, Kind, Loss, What};

/// Takes the events of all clients of a process, in memory. Cheap to clone, usable from all
/// threads.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    events: Vec<Event>,
    faults: Vec<Fault>,
}

impl Recorder {
    /// Returns the log of a client. Each client needs its own name and one log.
    pub fn client(&self, name: impl Into<Arc<str>>) -> ClientLog {
        ClientLog { recorder: self.clone(), name: name.into(), attempts: AtomicU64::new(0) }
    }

    /// Takes an event, for example from another process.
    pub fn event(&self, event: Event) {
        self.taken().events.push(event);
    }

    /// Takes a fault.
    pub fn fault(&self, fault: Fault) {
        self.taken().faults.push(fault);
    }

    /// Returns the history taken so far.
    pub fn history(&self, header: Header) -> History {
        let taken = self.taken();
        History { header, events: taken.events.clone(), faults: taken.faults.clone() }
    }

    /// Returns the history taken so far, and clears it.
    pub fn take(&self, header: Header) -> History {
        let Taken { events, faults } = std::mem::take(&mut *self.taken());
        History { header, events, faults }
    }

    /// A panic in another thread leaves only whole events.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the events of one client.
#[derive(Debug)]
pub struct ClientLog {
    recorder: Recorder,
    name: Arc<str>,
    attempts: AtomicU64,
}

impl ClientLog {
    /// The client's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The client asks for a lock.
    pub fn asked(&self, at: u64, name: impl Into<Arc<str>>, kind: Kind) -> AttemptLog {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let log =
            AttemptLog { recorder: self.recorder.clone(), client: self.name.clone(), attempt };
        log.take(at, What::Asked { name: name.into(), kind });
        log
    }
}

/// Takes the events of one attempt. [`What`] says on which side each time must err.
#[derive(Clone, Debug)]
pub struct AttemptLog {
    recorder: Recorder,
    client: Arc<str>,
    attempt: u64,
}

impl AttemptLog {
    /// The lock is granted, with its token if it has one.
    pub fn granted(&self, at: u64, token: Option<u64>) {
        self.take(at, What::Granted { token });
    }

    /// Whether the client's own calculation says that it still holds the lock.
    pub fn valid(&self, at: u64, yes: bool) {
        self.take(at, if yes { What::Valid } else { What::Invalid });
    }

    /// The client was told of the loss.
    pub fn lost(&self, at: u64, loss: Loss, reason: impl Into<Arc<str>>) {
        self.take(at, What::Lost { loss, reason: reason.into() });
    }

    /// The release begins.
    pub fn releasing(&self, at: u64) {
        self.take(at, What::Releasing);
    }

    /// The release is confirmed.
    pub fn released(&self, at: u64) {
        self.take(at, What::Released);
    }

    /// The attempt ended in another way.
    pub fn ended(&self, at: u64, why: impl Into<Arc<str>>) {
        self.take(at, What::Ended { why: why.into() });
    }

    /// An operator takes the lock away.
    pub fn revoked(&self, at: u64) {
        self.take(at, What::Revoked);
    }

    /// The resource accepted a write with this token.
    pub fn wrote(&self, at: u64, token: u64) {
        self.take(at, What::Wrote { token });
    }

    /// The resource refused a write with this token.
    pub fn rejected(&self, at: u64, token: u64) {
        self.take(at, What::Rejected { token });
    }

    fn take(&self, at: u64, what: What) {
        let (client, attempt) = (self.client.clone(), self.attempt);
        self.recorder.event(Event { at, client, attempt, what });
    }
}
