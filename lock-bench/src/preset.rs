//! The loads that have names.

use std::{fmt, time::Duration};

use crate::{Kind, Workload};

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

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::ManyNames => "many-names",
            Self::HotName => "hot-name",
            Self::HotFleet => "hot-fleet",
            Self::Herd => "herd",
            Self::Readers => "readers",
            Self::Permits => "permits",
            Self::Crash => "crash",
            Self::Leader => "leader",
        }
    }

    /// The one of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The sentence what it models.
    pub fn models(self) -> &'static str {
        match self {
            Self::Uncontended => "A job that nobody else wants: the price of asking.",
            Self::ManyNames => "A service that locks one row per request.",
            Self::HotName => "Tasks of one process that want the same name.",
            Self::HotFleet => "Processes of a fleet that want the same name.",
            Self::Herd => "A fleet that starts at once, as after a deploy.",
            Self::Readers => "Many that read a configuration, and few that change it.",
            Self::Permits => "A pool with fewer places than workers.",
            Self::Crash => "A holder's process dies (kill -9): the time until the next grant.",
            Self::Leader => "The leader of three nodes dies: the time until the next grant.",
        }
    }

    /// Whether it breaks servers or processes, so that only private servers can have it.
    pub fn needs_lab(self) -> bool {
        matches!(self, Self::Crash | Self::Leader)
    }

    /// Its load, measured for this long. The presets that [need the lab](Self::needs_lab) have one
    /// holder and one waiter.
    pub fn workload(self, seconds: Duration) -> Workload {
        let (workers, names, processes) = match self {
            Self::Uncontended => (1, 1, 1),
            Self::ManyNames => (64, 64, 1),
            Self::HotName | Self::Permits => (16, 1, 1),
            Self::HotFleet => (16, 1, 4),
            Self::Herd => (256, 1, 1),
            Self::Readers => (20, 1, 1),
            Self::Crash | Self::Leader => (2, 1, 2),
        };
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
            ttl: None,
            herd: self == Self::Herd,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
