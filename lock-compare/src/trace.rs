//! Actions and beliefs of an experiment's clients.

use std::sync::Arc;

use lock_history::{AttemptLog, ClientLog, Fault, Header, History, Kind, Recorder};

use crate::{Failure, Hold, Store, time::Time};

/// Records one side of an experiment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trace {
    recorder: Recorder,
    time: Time,
    header: Arc<Header>,
}

impl Trace {
    pub(crate) fn new(run: String, seed: u64, store: Store) -> Self {
        let header = Header::new(run, seed, store.scheme());
        Self { recorder: Recorder::default(), time: Time::start(), header: header.into() }
    }

    /// Nanoseconds since the start of the trace.
    pub fn now(&self) -> u64 {
        self.time.now()
    }

    /// Returns the log of a client. Each client needs its own name.
    pub fn client(&self, name: impl Into<Arc<str>>) -> Scribe {
        Scribe { log: Arc::new(self.recorder.client(name)), time: self.time }
    }

    /// Records a fault that begins now. It ends when [`Breakage::healed`] is called.
    pub fn fault(&self, what: impl Into<String>, target: impl Into<String>) -> Breakage {
        let (fault, target) = (what.into(), target.into());
        let fault = Fault { fault, target, from: self.now(), until: None };
        Breakage { trace: self.clone(), fault: Some(fault) }
    }

    /// Returns the history recorded so far.
    pub fn history(&self) -> History {
        self.recorder.history(Header::clone(&self.header))
    }
}

/// A fault in progress. Dropping it records it as never healed.
#[derive(Debug)]
pub struct Breakage {
    trace: Trace,
    fault: Option<Fault>,
}

impl Breakage {
    /// The fault ends now.
    pub fn healed(mut self) {
        if let Some(fault) = &mut self.fault {
            fault.until = Some(self.trace.now());
        }
    }
}

impl Drop for Breakage {
    fn drop(&mut self) {
        self.fault.take().into_iter().for_each(|fault| self.trace.recorder.fault(fault));
    }
}

/// Records the actions of one client.
#[derive(Clone, Debug)]
pub struct Scribe {
    log: Arc<ClientLog>,
    time: Time,
}

impl Scribe {
    /// The client asks for the exclusive lock of a name, now.
    pub fn asks(&self, name: &str) -> Entry {
        self.asks_for(name, Kind::Exclusive)
    }

    /// The client asks for a lock, now.
    pub fn asks_for(&self, name: &str, kind: Kind) -> Entry {
        Entry { log: self.log.asked(self.time.now(), name, kind), time: self.time }
    }
}

/// Records the events of one attempt, with the time of the call. Call the methods for questions
/// (`valid`, `releasing`) before the question is sent or with its time, and the others after the
/// reply has arrived.
#[derive(Clone, Debug)]
pub struct Entry {
    log: AttemptLog,
    time: Time,
}

impl Entry {
    /// The lock is granted.
    pub fn granted(&self, token: Option<u64>) {
        self.log.granted(self.time.now(), token);
    }

    /// Asks a holder whether it believes that it holds the lock. Records the result with a time
    /// from before the question.
    pub fn believes(&self, ask: impl FnOnce() -> bool) -> bool {
        let at = self.time.now();
        let yes = ask();
        self.log.valid(at, yes);
        yes
    }

    /// The client learned of the loss, from its own calculation or from the store.
    pub fn lost(&self, loss: lock_history::Loss, reason: &str) {
        self.log.lost(self.time.now(), loss, reason);
    }

    /// The release begins.
    pub fn releasing(&self) {
        self.log.releasing(self.time.now());
    }

    /// The release is confirmed.
    pub fn released(&self) {
        self.log.released(self.time.now());
    }

    /// Releases the lock, and records both ends of the release.
    ///
    /// After an error, the release is recorded as never confirmed.
    pub async fn gives_back(&self, hold: Box<dyn Hold>) -> Result<(), Failure> {
        self.releasing();
        hold.release().await?;
        self.released();
        Ok(())
    }

    /// A holder's end of its work: asks it whether it believes that it holds the lock, and releases
    /// the lock.
    pub async fn leaves(&self, hold: Box<dyn Hold>) -> Result<(), Failure> {
        self.believes(|| hold.believes());
        self.gives_back(hold).await
    }

    /// Records the reply to a try.
    pub fn tried(&self, hold: Option<&dyn Hold>) {
        match hold {
            Some(hold) => self.granted(hold.token()),
            None => self.ended("the lock is held"),
        }
    }

    /// Records the end of a wait. A granted lock is given back at once.
    pub async fn passes(&self, granted: Option<Box<dyn Hold>>) -> Result<(), Failure> {
        let Some(hold) = granted else {
            self.ended("waited in vain");
            return Ok(());
        };
        self.granted(hold.token());
        self.gives_back(hold).await
    }

    /// The attempt ended in another way.
    pub fn ended(&self, why: &str) {
        self.log.ended(self.time.now(), why);
    }

    /// The resource accepted a write.
    pub fn wrote(&self, token: u64) {
        self.log.wrote(self.time.now(), token);
    }

    /// The resource refused a write.
    pub fn rejected(&self, token: u64) {
        self.log.rejected(self.time.now(), token);
    }
}
