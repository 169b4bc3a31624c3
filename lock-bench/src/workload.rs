//! What the workers of a round do.

use std::{fmt, time::Duration};

use lock_core::duration::shown;
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

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { workers, names, processes, hold, seconds, kind, rate, .. } = self;
        Err(if [workers, names, processes].contains(&&0) {
            let counts = format!("workers = {workers}, names = {names}, processes = {processes}");
            format!("{counts}; at least 1 of each")
        } else if let Some(rate) = rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            format!("rate = {rate}; expected a number above 0")
        } else if processes > workers {
            format!("processes = {processes}; at most one per worker ({workers})")
        } else if names > workers {
            let why = "each worker takes one name, so give as many --workers, or more";
            format!("--names {names} is more than {workers} workers: {why}")
        } else if *kind == Kind::Permits && *workers < 2 {
            "--kind permits has half as many permits as workers: --workers 2, or more".into()
        } else if *kind == Kind::Readers && *workers < 10 {
            "--kind readers has a writer beside nine readers: --workers 10, or more".into()
        } else if self.herd && (self.rate.is_some() || !hold.is_zero()) {
            "herd asks once and releases at once, without --rate and --hold".into()
        } else if hold >= seconds {
            let (hold, seconds) = (shown(*hold), shown(*seconds));
            let why = format!("does not fit into a round of {seconds}: give longer --seconds");
            format!("--hold {hold} {why}")
        } else {
            return Ok(());
        })
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
