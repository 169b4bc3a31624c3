//! The input of an experiment.

use std::{sync::Arc, time::Duration};

use distlock::Locks;
use serde::{Deserialize, Serialize};

use crate::{Claim, Distlock, Failure, Ground, Store, Trace, ground::Grounds};

/// The thoroughness of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Fewer repetitions and shorter TTLs; the same verdicts, with wider intervals.
    Quick,
    /// All repetitions.
    #[default]
    Full,
}

/// The parts that the locks play.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Each lock plays its own part.
    #[default]
    AsClaimed,
    /// The control: the locks change parts, or the server part that the claim relies on is broken.
    /// The verdict must change. Otherwise the experiment can only say yes.
    Swapped,
}

/// One experiment on one store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Stage {
    /// The store under test.
    pub store: Store,
    /// The thoroughness.
    pub pace: Pace,
    /// The parts that the locks play.
    pub part: Part,
    /// The seed of everything random.
    pub seed: u64,
    pub(crate) claim: u8,
    pub(crate) grounds: Arc<Grounds>,
    /// Makes names different from other runs' names on a store in use.
    pub(crate) run: Arc<str>,
}

impl Stage {
    pub(crate) fn of(&self, claim: &Claim, store: Store) -> Self {
        Self { claim: claim.number, store, ..self.clone() }
    }

    /// Whether this is the control run, in which the locks change parts.
    pub(crate) fn is_swapped(&self) -> bool {
        self.part == Part::Swapped
    }

    /// Returns `as_claimed`, or `swapped` in a control run.
    pub(crate) fn pick<T>(&self, as_claimed: T, swapped: T) -> T {
        if self.is_swapped() { swapped } else { as_claimed }
    }

    /// Returns `quick` for a quick run, `full` for a full one.
    pub(crate) fn quick_or_full<T>(&self, quick: T, full: T) -> T {
        if self.pace == Pace::Quick { quick } else { full }
    }

    /// The TTL for experiments that wait for its end.
    pub(crate) fn short_ttl(&self) -> Duration {
        self.quick_or_full(Duration::from_secs(2), Duration::from_secs(3))
    }

    /// Returns a unique lock name: `compare/<run>/c7/<what>`. Call it once per lock.
    pub(crate) fn name(&self, what: &str) -> String {
        let part = self.pick("", "-swapped");
        format!("compare/{}/c{}{part}/{what}", self.run, self.claim)
    }

    /// Returns the store shared by all experiments, or by all sides of this one if it is embedded.
    /// An experiment must not break it or count in it.
    pub(crate) async fn shared(&self) -> Result<Arc<Ground>, Failure> {
        self.grounds.shared(self.store, self.claim).await
    }

    /// Returns a store for this experiment only, to be counted, stopped and killed. Dropping the
    /// value ends it.
    pub(crate) async fn own(&self) -> Result<Ground, Failure> {
        self.grounds.own(self.store).await
    }

    /// Connects a new client to the shared store.
    pub(crate) async fn connect(&self) -> Result<Locks, Failure> {
        Ok(crate::connect::connect(self.shared().await?.url()).await?)
    }

    /// Returns distlock on the shared store.
    pub(crate) async fn distlock(&self) -> Result<Distlock, Failure> {
        Ok(Distlock::new(self.shared().await?.url()))
    }

    /// Starts a new trace, for one side of the experiment.
    pub(crate) fn trace(&self, side: &str) -> Trace {
        Trace::new(format!("C{} {side}", self.claim), self.seed, self.store)
    }
}
