//! The book of a client's attempts, and when each of them asks the server.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lock_core::{Instant, keep};
use uuid::Uuid;

use super::attempt::Attempt;

/// Waiters that want to ask at about the same time ask together.
const TOGETHER: Duration = Duration::from_millis(5);

/// The book of a client's attempts, and when each of them asks the server.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) attempts: keep::attempts::Attempts<Attempt>,
    /// Waiting attempts that want to ask before their renewal is due.
    asks: BTreeSet<(Instant, Uuid)>,
}

impl Book {
    pub(super) fn ask(&mut self, attempt: &Attempt, at: Instant) {
        self.asks.insert((at, attempt.id));
    }

    pub(super) fn next_due(&self) -> Instant {
        let ask = self.asks.first().map_or(Instant::NEVER, |(at, _)| *at);
        self.attempts.next_due().min(ask)
    }

    /// Takes out what is due now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Arc<Attempt>> {
        let due = self.attempts.groups_due(now);
        let mut taken = self.attempts.reschedule(&due, now);
        while let Some((at, id)) = self.asks.pop_first() {
            if at > now + TOGETHER {
                self.asks.insert((at, id));
                break;
            }
            let asking = self.attempts.find(id).filter(|attempt| attempt.asks_at(at));
            taken.extend(asking.filter(|attempt| !due.contains(&attempt.ttl)).cloned());
        }
        taken
    }
}
