//! Which nodes may have an attempt's vote.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use lock_core::{Clock, Instant, keep::poison::lock};
use uuid::Uuid;

use super::config::NODES;

/// The nodes that were asked to vote for this client's attempts.
///
/// A node that was not asked has no vote: it need not be asked to give one back.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<HashMap<Uuid, Votes>>);

/// The nodes of one attempt.
#[derive(Debug)]
struct Votes {
    asked: Nodes,
    /// Those whose queue of debts takes all votes of the attempt back.
    owed: Nodes,
    /// The lock may be lost without a release. Then nothing else ends this record.
    until: Instant,
}

/// Whether each node is meant, by its number.
type Nodes = [bool; *NODES.end()];

/// A release is tried for one TTL after the end of the last vote.
fn end(ttl: Duration) -> Instant {
    Clock::Boot.now() + ttl * 2
}

impl Asked {
    /// Records that a node is asked for its vote.
    pub(super) fn record(&self, attempt: Uuid, node: usize, ttl: Duration) {
        let mut attempts = lock(&self.0);
        // Records that are over are removed only when there is no room, so the cost is low.
        if attempts.len() == attempts.capacity() {
            let now = Clock::Boot.now();
            attempts.retain(|_, votes| votes.until > now);
        }
        let (asked, owed, until) = (Nodes::default(), Nodes::default(), end(ttl));
        let votes = attempts.entry(attempt).or_insert(Votes { asked, owed, until });
        (votes.asked[node], votes.owed[node], votes.until) = (true, false, until);
    }

    /// Records that the attempt's votes last for another TTL.
    pub(super) fn renew(&self, attempt: Uuid, ttl: Duration) {
        if let Some(votes) = lock(&self.0).get_mut(&attempt) {
            votes.until = end(ttl);
        }
    }

    /// Returns the nodes that were asked; `None` if the attempt is another client's, or is over.
    pub(super) fn nodes(&self, attempt: Uuid) -> Option<Nodes> {
        lock(&self.0).get(&attempt).map(|votes| votes.asked)
    }

    /// Returns whether the node's queue of debts must be told to take all votes of the attempt back: the
    /// node was asked, and the queue was not told yet.
    pub(super) fn owes(&self, attempt: Uuid, node: usize) -> bool {
        let mut attempts = lock(&self.0);
        let Some(votes) = attempts.get_mut(&attempt) else { return false };
        votes.asked[node] && !std::mem::replace(&mut votes.owed[node], true)
    }

    /// Ends the record: all votes are given back, or will be.
    pub(super) fn forget(&self, attempt: Uuid) {
        lock(&self.0).remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    #[test]
    fn only_nodes_that_were_asked_owe_a_vote_and_only_once() {
        let (asked, attempt) = (Asked::default(), Uuid::new_v4());
        assert_eq!(asked.nodes(attempt), None);
        asked.record(attempt, 14, TTL);
        let nodes = asked.nodes(attempt).unwrap();
        assert!(nodes[14] && !nodes[0]);
        assert_eq!([14, 14, 0].map(|node| asked.owes(attempt, node)), [true, false, false]);
        asked.record(attempt, 14, TTL);
        assert!(asked.owes(attempt, 14), "it was asked again");
        asked.forget(attempt);
        assert_eq!((asked.nodes(attempt), asked.owes(attempt, 14)), (None, false));
    }

    #[test]
    fn records_of_lost_locks_do_not_stay() {
        let (asked, held) = (Asked::default(), Uuid::new_v4());
        asked.record(held, 0, TTL);
        (0..10_000).for_each(|_| asked.record(Uuid::new_v4(), 0, Duration::ZERO));
        assert!(lock(&asked.0).len() < 100);
        assert!(asked.nodes(held).is_some());
    }
}
