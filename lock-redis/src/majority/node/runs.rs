//! The servers' processes as they are known, for all nodes of a list.

use std::{sync::Mutex, time::Duration};

use lock_core::{Clock, Instant, keep::poison::lock};

use super::super::fault::Fault;
use crate::config::Address;

/// The process of each node, as it was seen last.
///
/// A server that starts again may have forgotten its votes, and would vote twice. All votes that it
/// may have forgotten are over after the longest TTL, so its votes count from then on. At the first
/// connection the server's own uptime counts; a restart that this client sees counts from then by
/// this client's clock.
#[derive(Debug)]
pub(in super::super) struct Runs {
    max_ttl: Duration,
    /// Each node's address.
    addresses: Vec<Address>,
    seen: Mutex<Vec<Option<(String, Instant)>>>,
}

impl Runs {
    /// No node has been seen yet.
    pub(in super::super) fn new(max_ttl: Duration, addresses: &[Address]) -> Self {
        let seen = Mutex::new(vec![None; addresses.len()]);
        Self { max_ttl, addresses: addresses.to_vec(), seen }
    }

    /// Records a node's process, and returns from when on its votes count.
    ///
    /// # Errors
    ///
    /// If another node is the same process.
    pub(super) fn enter(&self, node: usize, run: &str, uptime: Duration) -> Result<Instant, Fault> {
        let mut seen = lock(&self.seen);
        let is_twin = |other: usize| {
            other != node && seen[other].as_ref().is_some_and(|(known, _)| known == run)
        };
        if let Some(twin) = (0..seen.len()).find(|other| is_twin(*other)) {
            return Err(Fault::twin(&self.addresses[twin]));
        }
        let now = Clock::Boot.now();
        let counts_from = match &seen[node] {
            Some((known, counts_from)) if known == run => *counts_from,
            Some(_) => now + self.max_ttl,
            None => now + self.max_ttl.saturating_sub(uptime),
        };
        seen[node] = Some((run.to_owned(), counts_from));
        Ok(counts_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_secs(60);

    fn left(runs: &Runs, node: usize, run: &str, uptime: u64) -> Result<u64, Fault> {
        let counts_from = runs.enter(node, run, Duration::from_secs(uptime))?;
        Ok(counts_from.since(Clock::Boot.now()).as_secs_f64().round() as u64)
    }

    #[test]
    fn votes_count_when_those_before_a_restart_are_over() {
        let runs = Runs::new(MAX, &[Address::new("a", 1), Address::new("b", 1)]);
        assert_eq!(left(&runs, 0, "x", 20), Ok(40), "the node started 20 s ago");
        assert_eq!(left(&runs, 1, "y", 3600), Ok(0));
        assert_eq!(left(&runs, 0, "x", 0), Ok(40), "a new connection changes nothing");
        assert_eq!(left(&runs, 1, "z", 3600), Ok(60), "a restart, whatever the node's clock says");
    }

    #[test]
    fn one_server_is_one_node() {
        let runs = Runs::new(MAX, &[Address::new("a", 1), Address::new("b", 1)]);
        runs.enter(0, "x", MAX).unwrap();
        let twin = runs.enter(1, "x", MAX).unwrap_err().to_string();
        assert_eq!(twin, "it is the same server as a:1");
        runs.enter(1, "y", MAX).unwrap();
    }
}
