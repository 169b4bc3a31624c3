//! What the workers of a round do.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// The kind of lock that the workers take.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One holder of a name.
    Exclusive,
    /// Nine of ten workers read, the tenth writes.
    Readers,
    /// Half as many permits as workers.
    Permits,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exclusive, Self::Readers, Self::Permits];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Readers => "readers",
            Self::Permits => "permits",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("unknown kind {text:?}; known are {known}")
        })
    }
}

/// A load: how many workers take which locks, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Workers of all processes together, at least 1.
    pub workers: u32,
    /// Names that the workers take in turns, at least 1: worker `w` takes name `w % names` alone.
    pub names: u32,
    /// Processes that share the workers evenly. With 1 the workers are tasks of this process.
    pub processes: u32,
    /// How long a lock is held.
    pub hold: Duration,
    /// How long a round is measured.
    pub seconds: Duration,
    /// The kind of lock.
    pub kind: Kind,
    /// Starts per second of all workers together (open loop). `None`: a worker starts again as soon
    /// as it has released (closed loop).
    pub rate: Option<f64>,
    /// The time to live of locks; `None` is the store's default.
    pub ttl: Option<Duration>,
    /// All workers ask at the same moment, once per round, and each releases as soon as it holds.
    pub herd: bool,
}

impl Workload {
    /// Refuses what cannot be played.
    pub fn check(&self) -> Result<(), String> {
        let Self { workers, names, processes, rate, .. } = self;
        for (what, value) in [("workers", workers), ("names", names), ("processes", processes)] {
            if *value == 0 {
                return Err(format!("{what} = 0; at least 1 is needed"));
            }
        }
        if processes > workers {
            return Err(format!("processes = {processes}; at most one per worker ({workers})"));
        }
        match rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            Some(rate) => Err(format!("rate = {rate}; starts per second are more than 0")),
            None => Ok(()),
        }
    }

    /// The permits of a semaphore: half as many as workers.
    pub fn permits(&self) -> u32 {
        (self.workers / 2).max(1)
    }

    /// Whether this worker takes the lock together with others.
    pub fn is_shared(&self, worker: u32) -> bool {
        match self.kind {
            Kind::Exclusive => false,
            Kind::Readers => worker % 10 != 9,
            Kind::Permits => true,
        }
    }
}
