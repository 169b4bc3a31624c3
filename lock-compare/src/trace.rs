//! Actions and beliefs of an experiment's clients.

use std::{sync::Arc, time::Duration};

use lock_history::{AttemptLog, ClientLog, Fault, Header, History, Kind, Recorder};

use crate::{Actor, Contestant, Failure, Hold, Player, Store, time::Time};

/// Longest wait for a lock that is free, or will soon be.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records one side of an experiment. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
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
    pub(crate) fn now(&self) -> u64 {
        self.time.now()
    }

    /// Returns the log of a client. Each client needs its own name.
    pub(crate) fn client(&self, name: impl Into<Arc<str>>) -> Scribe {
        Scribe { log: Arc::new(self.recorder.client(name)), time: self.time }
    }

    /// Records a fault that begins now. It ends when [`Breakage::healed`] is called.
    pub(crate) fn fault(&self, what: impl Into<String>, target: impl Into<String>) -> Breakage {
        let (fault, target) = (what.into(), target.into());
        let fault = Fault { fault, target, from: self.now(), until: None };
        Breakage { trace: self.clone(), fault: Some(fault) }
    }

    pub(crate) fn history(&self) -> History {
        self.recorder.history(Header::clone(&self.header))
    }
}

/// A fault in progress. Dropping it records it as never healed.
#[derive(Debug)]
pub(crate) struct Breakage {
    trace: Trace,
    fault: Option<Fault>,
}

impl Breakage {
    pub(crate) fn healed(mut self) {
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

#[derive(Clone, Debug)]
pub(crate) struct Scribe {
    log: Arc<ClientLog>,
    time: Time,
}

impl Scribe {
    /// The client asks for the exclusive lock of a name, now.
    pub(crate) fn asks(&self, name: &str) -> Entry {
        Entry { log: self.log.asked(self.time.now(), name, Kind::Exclusive), time: self.time }
    }

    /// The client asks for a lock that is free, or will soon be, and gets it.
    pub(crate) async fn takes(
        &self,
        player: &dyn Player,
        name: &str,
        ttl: Duration,
    ) -> Result<(Box<dyn Hold>, Entry), Failure> {
        let entry = self.asks(name);
        let hold = player.acquire(name, ttl, PATIENCE).await?.ok_or("it waits in vain")?;
        entry.granted(hold.token());
        Ok((hold, entry))
    }

    /// Same as [`takes`](Self::takes), by a new client inside an actor's runtime.
    pub(crate) async fn takes_in(
        &self,
        home: &Actor,
        lock: &dyn Contestant,
        name: &str,
        ttl: Duration,
    ) -> Result<(Arc<dyn Player>, Box<dyn Hold>, Entry), Failure> {
        let client = lock.client_in(home).await?;
        let entry = self.asks(name);
        let hold = client.acquire_in(home, name, ttl, PATIENCE).await?.ok_or("it waits in vain")?;
        entry.granted(hold.token());
        Ok((client, hold, entry))
    }
}

/// Records the events of one attempt, with the time of the call. Call the methods for questions
/// (`valid`, `releasing`) before the question is sent or with its time, and the others after the
/// reply has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    log: AttemptLog,
    time: Time,
}

impl Entry {
    pub(crate) fn granted(&self, token: Option<u64>) {
        self.log.granted(self.time.now(), token);
    }

    /// Asks a holder whether it believes that it holds the lock. Records the result with a time
    /// from before the question.
    pub(crate) fn believes(&self, ask: impl FnOnce() -> bool) -> bool {
        let at = self.time.now();
        let yes = ask();
        self.log.valid(at, yes);
        yes
    }

    /// The client learned of the loss, from its own calculation or from the store.
    pub(crate) fn lost(&self, loss: lock_history::Loss, reason: &str) {
        self.log.lost(self.time.now(), loss, reason);
    }

    pub(crate) fn releasing(&self) {
        self.log.releasing(self.time.now());
    }

    pub(crate) fn released(&self) {
        self.log.released(self.time.now());
    }

    /// Releases the lock, and records both ends of the release.
    ///
    /// After an error, the release is recorded as never confirmed.
    pub(crate) async fn gives_back(&self, hold: Box<dyn Hold>) -> Result<(), Failure> {
        self.releasing();
        hold.release().await?;
        self.released();
        Ok(())
    }

    /// A holder's end of its work: asks it whether it believes that it holds the lock, and releases
    /// the lock.
    pub(crate) async fn leaves(&self, hold: Box<dyn Hold>) -> Result<(), Failure> {
        self.believes(|| hold.believes());
        self.gives_back(hold).await
    }

    pub(crate) fn tried(&self, hold: Option<&dyn Hold>) {
        match hold {
            Some(hold) => self.granted(hold.token()),
            None => self.ended("the lock is held"),
        }
    }

    /// Records the end of a wait. A granted lock is given back at once.
    pub(crate) async fn passes(&self, granted: Option<Box<dyn Hold>>) -> Result<(), Failure> {
        let Some(hold) = granted else {
            self.ended("waited in vain");
            return Ok(());
        };
        self.granted(hold.token());
        self.gives_back(hold).await
    }

    /// The attempt ended in another way.
    pub(crate) fn ended(&self, why: &str) {
        self.log.ended(self.time.now(), why);
    }

    pub(crate) fn wrote(&self, token: u64) {
        self.log.wrote(self.time.now(), token);
    }

    pub(crate) fn rejected(&self, token: u64) {
        self.log.rejected(self.time.now(), token);
    }
}
