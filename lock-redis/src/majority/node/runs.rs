//! The servers' processes as they are known, for all nodes of a list.

use std::{sync::Mutex, time::Duration};

use lock_core::{Clock, Instant, keep::poison::lock};
use redis::RedisResult;

use super::super::fault::twin;
use crate::config::Address;

/// The process of each node, as it was last seen.
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
    processes: Mutex<Vec<Option<Process>>>,
}

/// A node's process as it was seen last.
#[derive(Clone, Debug)]
struct Process {
    /// Its id; none if another node has turned out to be that process.
    run: Option<String>,
    counts_from: Instant,
    is_connected: bool,
}

/// Redis rounds both its clock and its start down to seconds before it subtracts them, so the
/// uptime that it shows may be greater than its age by this much.
const ROUNDING: Duration = Duration::from_secs(1);

impl Runs {
    /// No node has been seen yet.
    pub(in super::super) fn new(max_ttl: Duration, addresses: &[Address]) -> Self {
        let processes = Mutex::new(vec![None; addresses.len()]);
        Self { max_ttl, addresses: addresses.to_vec(), processes }
    }

    /// Records a node's process.
    ///
    /// # Errors
    ///
    /// If another node that is connected is the same process. One that is not connected may have
    /// swapped hosts with it: both have then restarted, as far as votes go.
    pub(super) fn enter(&self, node: usize, run: &str, uptime: Duration) -> RedisResult<()> {
        let mut processes = lock(&self.processes);
        let mut has_moved = false;
        for (other, known) in processes.iter_mut().enumerate().filter(|(other, _)| *other != node) {
            let Some(known) = known.as_mut().filter(|known| known.run.as_deref() == Some(run))
            else {
                continue;
            };
            if known.is_connected {
                return Err(twin(&self.addresses[other]));
            }
            (known.run, has_moved) = (None, true);
        }
        let now = Clock::Boot.now();
        let age = uptime.saturating_sub(ROUNDING);
        let counts_from = match &processes[node] {
            Some(known) if known.run.as_deref() == Some(run) => known.counts_from,
            None if !has_moved => now + self.max_ttl.saturating_sub(age),
            _ => now + self.max_ttl,
        };
        processes[node] =
            Some(Process { run: Some(run.to_owned()), counts_from, is_connected: true });
        Ok(())
    }

    /// Returns from when on a node's votes count.
    pub(super) fn counts_from(&self, node: usize) -> Instant {
        lock(&self.processes)[node].as_ref().map_or(Instant::NEVER, |process| process.counts_from)
    }

    /// Records that a node has no connection any more.
    pub(super) fn leave(&self, node: usize) {
        if let Some(process) = &mut lock(&self.processes)[node] {
            process.is_connected = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::fault::Fault, *};

    const MAX: Duration = Duration::from_secs(60);

    fn left(runs: &Runs, node: usize, run: &str, uptime: u64) -> Result<u64, Fault> {
        let entered = runs.enter(node, run, Duration::from_secs(uptime));
        entered.map_err(Fault::of)?;
        Ok(runs.counts_from(node).since(Clock::Boot.now()).as_secs_f64().round() as u64)
    }

    #[test]
    fn votes_count_when_those_before_a_restart_are_over() {
        let runs = Runs::new(MAX, &[Address::new("a", 1), Address::new("b", 1)]);
        assert_eq!(left(&runs, 0, "x", 20), Ok(41), "the node started 19 s ago at least");
        assert_eq!(left(&runs, 1, "y", 3600), Ok(0));
        assert_eq!(left(&runs, 0, "x", 0), Ok(41), "a new connection changes nothing");
        assert_eq!(left(&runs, 1, "z", 3600), Ok(60), "a restart, whatever the node's clock says");
    }

    #[test]
    fn one_server_is_one_node() {
        let runs = Runs::new(MAX, &[Address::new("a", 1), Address::new("b", 1)]);
        runs.enter(0, "x", MAX).unwrap();
        let twin = left(&runs, 1, "x", 60).unwrap_err().to_string();
        assert_eq!(twin, "it is the same server as a:1");
        runs.enter(1, "y", MAX).unwrap();
    }

    #[test]
    fn servers_that_swap_hosts_count_anew() {
        let runs = Runs::new(MAX, &[Address::new("a", 1), Address::new("b", 1)]);
        assert_eq!((left(&runs, 0, "x", 3600), left(&runs, 1, "y", 3600)), (Ok(0), Ok(0)));
        runs.leave(0);
        runs.leave(1);
        assert_eq!(left(&runs, 1, "x", 3600), Ok(60));
        assert_eq!(left(&runs, 0, "y", 3600), Ok(60));
        assert!(left(&runs, 0, "x", 3600).unwrap_err().is_twin());
    }
}
