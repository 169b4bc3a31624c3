//! Who is told of a change: PostgreSQL pushes, the others are asked.

use std::collections::BTreeSet;

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::{
    dialect::Dialect,
    row::{EXCLUSIVE, SHARED},
};

/// Where PostgreSQL tells that a leader, or its value, has changed.
pub(crate) const OBSERVERS: &str = "distlock_v1_values";
/// The greatest token that a table can have.
const LAST: i64 = i64::MAX;
/// Tells a client that something has changed in a queue.
const NOTIFY: &str = "pg_notify('distlock_v1_' || encode(client, 'hex'), encode(name, 'hex'))";

impl Script {
    /// Waits until whoever is about to enter one of these queues has entered: who comes later is not
    /// overlooked. Where others are woken, also until whoever is about to leave has left: of two who leave
    /// together, the second one sees who is next after both.
    pub(super) fn after_arrivals(self, names: &[&LockName]) -> String {
        let lock = match self.0 {
            // One write at a time.
            Dialect::Sqlite => return String::new(),
            Dialect::MySql => "LOCK IN SHARE MODE",
            Dialect::Postgres => "FOR NO KEY UPDATE",
        };
        let slots = self.slots(names.iter().copied());
        format!("SELECT slot FROM distlock_v1_slots WHERE slot IN ({slots}) ORDER BY slot {lock};")
    }

    /// The counters of these names, each once.
    pub(super) fn slots<'a>(self, names: impl Iterator<Item = &'a LockName>) -> String {
        let slots: BTreeSet<_> = names.map(|name| self.0.slot(name.as_str().as_bytes())).collect();
        let slots: Vec<_> = slots.iter().map(u64::to_string).collect();
        slots.join(", ")
    }

    /// Wakes the other clients that have somebody who is let in when these attempts have left, and was not
    /// before: the [queue rule](lock_core::queue), which lets nobody in behind the first exclusive entry
    /// that stays.
    pub(super) fn wake(self, names: &str, ids: &str, client: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let own = self.id(client);
        // Before an entry there are only entries that it goes with, and together they are not too many.
        let admitted = |before: &str| {
            format!(
                "all_{before} = CASE kind WHEN {EXCLUSIVE} THEN 1 ELSE alike_{before} END \
                 AND taken_{before} <= lim"
            )
        };
        let (was, is) = (admitted("was"), admitted("is"));
        format!(
            "WITH queue AS (SELECT entry.*, attempt IN ({ids}) AS goes FROM (SELECT name, (\
             SELECT MIN(token) FROM distlock_v1_entries AS stays WHERE stays.name = left_by.name \
             AND kind = {EXCLUSIVE} AND attempt NOT IN ({ids})) AS last \
             FROM (SELECT DISTINCT unnest(ARRAY[{names}]) AS name) AS left_by) AS bound \
             JOIN distlock_v1_entries AS entry ON entry.name = bound.name \
             AND token <= COALESCE(last, {LAST})), \
             place AS (SELECT name, client, kind, lim, goes, \
             COUNT(*) OVER everybody AS all_was, \
             COUNT(*) FILTER (WHERE NOT goes) OVER everybody AS all_is, \
             COUNT(*) OVER same AS alike_was, \
             COUNT(*) FILTER (WHERE NOT goes) OVER same AS alike_is, \
             SUM(weight) OVER everybody AS taken_was, \
             SUM(weight) FILTER (WHERE NOT goes) OVER everybody AS taken_is FROM queue \
             WINDOW everybody AS (PARTITION BY name ORDER BY token), \
             same AS (PARTITION BY name, kind, lim ORDER BY token)) \
             SELECT {NOTIFY} FROM (SELECT DISTINCT client, name FROM place WHERE NOT goes \
             AND client <> {own} AND {is} AND NOT ({was})) AS next;"
        )
    }

    /// Wakes the other clients that have a reader among the first of a queue.
    pub(super) fn wake_readers(self, name: &str, client: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let own = self.id(client);
        format!(
            "SELECT {NOTIFY} FROM (SELECT DISTINCT client, name FROM distlock_v1_entries AS reader \
             WHERE name = {name} AND kind = {SHARED} AND client <> {own} AND token < COALESCE((\
             SELECT MIN(token) FROM distlock_v1_entries AS other WHERE other.name = reader.name \
             AND other.kind <> {SHARED}), token + 1)) AS next;"
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
