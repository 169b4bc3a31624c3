//! The loads that have names.

use std::{fmt, time::Duration};

use crate::{Kind, Workload};

/// The TTL of the locks whose holder is killed: every store allows it.
const OF_A_CRASH: Duration = Duration::from_secs(5);

/// The name, the workers, names and processes, and the sentence what it models, in the order of
/// [`Preset::ALL`].
static ROWS: [(&str, [u32; 3], &str); 9] = [
    ("uncontended", [1, 1, 1], "A job that nobody else wants: the price of asking."),
    ("many-names", [64, 64, 1], "A service that locks one row per request."),
    ("hot-name", [16, 1, 1], "Tasks of one process that want the same name."),
    ("hot-fleet", [16, 1, 4], "Processes of a fleet that want the same name."),
    ("herd", [256, 1, 1], "A fleet that starts at once, as after a deploy."),
    ("readers", [20, 1, 1], "Many that read a configuration, and few that change it."),
    ("permits", [16, 1, 1], "A pool with fewer places than workers."),
    ("crash", [2, 1, 2], "A holder's process dies (kill -9): the time until the next grant."),
    ("leader", [2, 1, 2], "The leader of three nodes dies: the time until the next grant."),
];

/// A load with a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Preset {
    /// One task, one name.
    Uncontended,
    /// 64 tasks, each with a name of its own.
    ManyNames,
    /// 16 tasks of one process on one name.
    HotName,
    /// 4 processes with 4 tasks each on one name.
    HotFleet,
    /// 256 tasks that ask at once.
    Herd,
    /// 18 readers and 2 writers.
    Readers,
    /// 16 tasks, 8 permits.
    Permits,
    /// A holder's process is killed. Needs private servers.
    Crash,
    /// The leader of three nodes is killed. Needs private servers.
    Leader,
}

impl Preset {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::Uncontended,
        Self::ManyNames,
        Self::HotName,
        Self::HotFleet,
        Self::Herd,
        Self::Readers,
        Self::Permits,
        Self::Crash,
        Self::Leader,
    ];

    /// The one of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Whether it breaks servers or processes, so that only private servers can have it.
    pub fn needs_lab(self) -> bool {
        matches!(self, Self::Crash | Self::Leader)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        ROWS[self as usize].0
    }

    /// The sentence what it models.
    pub fn models(self) -> &'static str {
        ROWS[self as usize].2
    }

    /// Its load, measured for this long. The presets that [need the lab](Self::needs_lab) have one
    /// holder and one waiter.
    pub fn workload(self, seconds: Duration) -> Workload {
        let [workers, names, processes] = ROWS[self as usize].1;
        let kind = match self {
            Self::Readers => Kind::Readers,
            Self::Permits => Kind::Permits,
            _ => Kind::Exclusive,
        };
        Workload {
            workers,
            names,
            processes,
            hold: Duration::ZERO,
            seconds,
            kind,
            rate: None,
            ttl: (self == Self::Crash).then_some(OF_A_CRASH),
            herd: self == Self::Herd,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
