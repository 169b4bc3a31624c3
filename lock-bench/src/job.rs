//! What the workers of one process do.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Workload;

/// It has no `Debug`: a URL may contain a password.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The store's scheme in the list of stores.
    pub scheme: String,
    pub url: String,
    /// The contender's name.
    pub contender: String,
    /// The start of all names.
    pub prefix: String,
    pub workload: Workload,
    /// The numbers of the workers.
    pub workers: Range<u32>,
    /// Whether each worker has a client of its own.
    pub apart: bool,
    /// How many of the workers take their lock at the start and keep it.
    pub held: u32,
}

impl Job {
    /// The share of one of several processes.
    pub(crate) fn part(&self, process: u32) -> Self {
        let all = self.workers.len() as u64;
        let processes = u64::from(self.workload.processes);
        let border = |process: u64| {
            // A part of a range of `u32`.
            self.workers.start + u32::try_from(all * process / processes).unwrap_or(u32::MAX)
        };
        let process = u64::from(process);
        Self { workers: border(process)..border(process + 1), ..self.clone() }
    }
}
