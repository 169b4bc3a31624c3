//! A holder on a broken store, and a second client that tries then.

use std::time::Duration;

use lock_history::History;
use tokio::time::{sleep, timeout};

use crate::{Breakage, Contestant, Entry, Failure, Hold, Nature, Side, Stage, Trace, time::Time};

/// Limit for a release: the store may be dead.
const LIMIT: Duration = Duration::from_secs(3);
/// Time that B works with the lock, if it gets it.
const WORK: Duration = Duration::from_millis(300);

/// A, which gets the lock before the store breaks.
pub(crate) struct FirstHolder {
    trace: Trace,
    name: String,
    ttl: Duration,
    hold: Box<dyn Hold>,
    entry: Entry,
    faults: Vec<Breakage>,
    broken: Option<Time>,
    lock: String,
    nature: Nature,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Second {
    GotIn,
    /// The store says that the lock is held.
    Waits,
    /// The store gives no reply, or refuses.
    Refused(String),
}

pub(crate) struct Meeting {
    pub lock: String,
    pub nature: Nature,
    pub second: Second,
    /// Whether A believed that it held the lock, after B's try.
    pub first_believes: bool,
    pub released: String,
    /// Whether A kept its lock until its release.
    pub kept: bool,
    pub tokens: (Option<u64>, Option<u64>),
    /// Time from the fault to the end of B's try.
    pub after: Duration,
    pub history: History,
}

impl FirstHolder {
    /// A takes a free lock. `what` names the lock and the trace.
    pub(crate) async fn take(
        stage: &Stage,
        lock: &dyn Contestant,
        what: &str,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let (trace, name) = (stage.trace(what), stage.name(what));
        let (hold, entry) = trace.client("A").takes(&*lock.client().await?, &name, ttl).await?;
        entry.believes(|| hold.believes());
        let (lock, nature) = (lock.label(), lock.nature());
        let faults = Vec::new();
        Ok(Self { trace, name, ttl, hold, entry, faults, broken: None, lock, nature })
    }

    /// Records the fault that begins now.
    pub(crate) fn breaks(&mut self, what: &str, target: &str) {
        self.faults.push(self.trace.fault(what, target));
        self.broken.get_or_insert_with(Time::start);
    }

    /// B tries to get the lock, up to the limit. Then both leave.
    pub(crate) async fn meets(
        self,
        lock: &dyn Contestant,
        wait: Duration,
    ) -> Result<Meeting, Failure> {
        let entry = self.trace.client("B").asks(&self.name);
        let acquire = async { lock.client().await?.acquire(&self.name, self.ttl, wait).await };
        let tried = timeout(wait + LIMIT, acquire).await;
        let after = self.broken.map(Time::since).unwrap_or_default();
        let (second, hold) = match tried {
            Ok(Ok(Some(hold))) => (Second::GotIn, Some(hold)),
            Ok(Ok(None)) => (Second::Waits, None),
            Ok(Err(error)) => (Second::Refused(error.to_string()), None),
            Err(_) => (Second::Refused("no answer".into()), None),
        };
        match (&second, &hold) {
            (_, Some(hold)) => {
                entry.granted(hold.token());
                sleep(WORK).await;
                entry.believes(|| hold.believes());
            }
            (Second::Refused(why), None) => entry.ended(why),
            _ => entry.ended("the lock is held"),
        }
        let first_believes = self.entry.believes(|| self.hold.believes());
        let tokens = (self.hold.token(), hold.as_ref().and_then(|hold| hold.token()));
        if let Some(hold) = hold {
            entry.believes(|| hold.believes());
            let _ = leave(hold, &entry).await;
        }
        let Self { trace, hold, entry, faults, lock, nature, .. } = self;
        let left = leave(hold, &entry).await;
        drop(faults);
        let kept = left == Ok(true);
        let released = match left {
            Ok(true) => "the store says that it was its own".to_owned(),
            Ok(false) => "the store says that it was its own no more".to_owned(),
            Err(error) => error,
        };
        let history = trace.history();
        Ok(Meeting { lock, nature, second, first_believes, released, kept, tokens, after, history })
    }
}

async fn leave(hold: Box<dyn Hold>, entry: &Entry) -> Result<bool, String> {
    entry.releasing();
    let left = match timeout(LIMIT, hold.release()).await {
        Ok(Ok(ours)) => Ok(ours),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    };
    match &left {
        Ok(true) => entry.released(),
        Ok(false) => entry.ended("its own no more"),
        Err(error) => entry.ended(error),
    }
    left
}

impl Meeting {
    /// Whether both believed that they held the lock.
    pub(crate) fn both(&self) -> bool {
        self.second == Second::GotIn && self.first_believes
    }

    pub(crate) fn told(&self) -> String {
        let first = match self.first_believes {
            true => "A believes that it holds the lock",
            false => "A knows that it has lost the lock",
        };
        let second = match &self.second {
            Second::GotIn => "B gets the same lock",
            Second::Waits => "B does not get in",
            Second::Refused(_) => "B gets no lock, because the store does not serve it",
        };
        format!("{first}, and {second}")
    }

    /// Returns it as a side, which is well if not both believe that they hold the lock.
    pub(crate) fn side(self, label: &str) -> Result<Side, Failure> {
        let side = Side::new(label, self.nature, !self.both(), self.told()).evidence(format!(
            "{:.1} s after the fault: {}",
            self.after.as_secs_f64(),
            self.told()
        ));
        let side = match &self.second {
            Second::Refused(why) => side.evidence(format!("B is told: {why}")),
            _ => side,
        };
        let side = match self.tokens {
            (Some(a), Some(b)) => side.evidence(format!("the tokens: A has {a}, B has {b}")),
            _ => side,
        };
        let side = side.evidence(format!("A releases: {}", self.released));
        Ok(side.played(self.history)?)
    }
}
