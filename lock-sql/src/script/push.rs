//! Who is told of a change: PostgreSQL pushes, the others are asked.

use std::collections::BTreeSet;

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::{dialect::Dialect, row::EXCLUSIVE};

/// Where PostgreSQL tells that a leader, or its value, has changed.
pub(crate) const OBSERVERS: &str = "distlock_v1_values";

impl Script {
    /// Waits until whoever is about to enter one of these queues has entered: who comes later is not
    /// overlooked.
    pub(super) fn after_arrivals(self, names: &[&LockName]) -> String {
        let slot = |name: &&LockName| self.0.slot(name.as_str().as_bytes());
        let slots: BTreeSet<_> = names.iter().map(slot).collect();
        let slots: Vec<_> = slots.iter().map(u64::to_string).collect();
        let slots = slots.join(", ");
        let share = match self.0 {
            // One write at a time.
            Dialect::Sqlite => return String::new(),
            Dialect::MySql => "LOCK IN SHARE MODE",
            Dialect::Postgres => "FOR SHARE",
        };
        format!("SELECT slot FROM distlock_v1_slots WHERE slot IN ({slots}) ORDER BY slot {share};")
    }

    /// Wakes the other clients that may have somebody to let in: up to the first exclusive entry.
    pub(super) fn wake(self, names: &str, client: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let own = self.id(client);
        format!(
            "SELECT pg_notify('distlock_v1_' || encode(client, 'hex'), encode(name, 'hex')) FROM \
             (SELECT DISTINCT client, name FROM distlock_v1_entries AS next WHERE name IN ({names}) \
             AND client <> {own} AND token <= COALESCE((SELECT MIN(token) FROM distlock_v1_entries \
             AS earliest WHERE earliest.name = next.name AND earliest.kind = {EXCLUSIVE}), next.token)) \
             AS waiting;"
        )
    }

    pub(super) fn tell_victim(self, name: &str, attempt: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let id = self.id(attempt);
        format!(
            "SELECT pg_notify('distlock_v1_' || encode(client, 'hex'), '-' || encode(attempt, 'hex')) \
             FROM distlock_v1_entries WHERE attempt = {id} AND name = {name};"
        )
    }

    pub(super) fn tell_observers(self, names: &str) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        format!(
            "SELECT pg_notify('{OBSERVERS}', encode(name, 'hex')) \
             FROM unnest(ARRAY[{names}]) AS name;"
        )
    }
}
