//! Who is told of a change: PostgreSQL pushes, the others are asked.

use std::sync::Arc;

use lock_core::{Kind, LockName};
use uuid::Uuid;

use super::Script;
use crate::{
    layout::{
        dialect::Dialect,
        row::{EXCLUSIVE, PERMIT, SHARED},
    },
    session::attempt::Attempt,
};

/// Where PostgreSQL tells that a leader, or its value, has changed.
pub(crate) const OBSERVERS: &str = "distlock_v1_values";
/// Tells a client that something has changed in a queue.
const NOTIFY: &str = "pg_notify('distlock_v1_' || encode(client, 'hex'), encode(name, 'hex'))";

/// Who leaves a queue, as far as it is known: the question who is let in is simpler then.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Leaving {
    Writers,
    Permits,
    /// Also a reader: he may be a writer by now.
    Anybody,
}

impl Leaving {
    pub(super) fn of<'a>(attempts: impl Iterator<Item = &'a Arc<Attempt>> + Clone) -> Self {
        let all = |is: fn(Kind) -> bool| attempts.clone().all(|attempt| is(attempt.kind));
        if all(|kind| kind == Kind::Exclusive) {
            Self::Writers
        } else if all(|kind| matches!(kind, Kind::Permit { .. })) {
            Self::Permits
        } else {
            Self::Anybody
        }
    }
}

impl Script {
    /// Waits until whoever is about to enter one of these queues has entered: who comes later is
    /// not overlooked. Where others are woken, also until whoever is about to leave has left: of
    /// two who leave together, the second one sees who is next after both.
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

    /// The same where others are told of a change, who do not look for themselves.
    pub(super) fn after_arrivals_if_pushed(self, names: &[&LockName]) -> String {
        match self.0 {
            Dialect::Postgres => self.after_arrivals(names),
            Dialect::Sqlite | Dialect::MySql => String::new(),
        }
    }

    /// Wakes the other clients that have somebody who is let in when these attempts have left a
    /// queue: nobody behind the first exclusive entry that stays.
    pub(super) fn wake(self, name: &str, ids: &str, who: Leaving, client: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let own = self.id(client);
        let queue = format!("FROM distlock_v1_entries WHERE name = {name}");
        let first = format!(
            "SELECT * {queue} AND token <= COALESCE((SELECT MIN(token) {queue} \
             AND kind = {EXCLUSIVE} AND attempt NOT IN ({ids})), token)"
        );
        let next = match who {
            // A writer behind readers is woken in vain, which is cheaper than to find out.
            Leaving::Writers => first,
            // Whoever has enough of them now and had not before.
            Leaving::Permits => format!(
                "SELECT * FROM (SELECT name, client, attempt, kind, lim, SUM(weight) OVER line AS before, \
                 SUM(weight) FILTER (WHERE attempt NOT IN ({ids})) OVER line AS now \
                 FROM ({first}) AS first WINDOW line AS (ORDER BY token)) AS counted \
                 WHERE kind <> {PERMIT} OR now <= lim AND before > lim"
            ),
            // When a reader leaves, other readers have been let in before, or are not now.
            Leaving::Anybody => format!(
                "SELECT * FROM ({first}) AS next WHERE CASE kind \
                 WHEN {SHARED} THEN EXISTS (SELECT 1 {queue} AND attempt IN ({ids}) AND kind <> {SHARED}) \
                 ELSE NOT EXISTS (SELECT 1 FROM distlock_v1_entries AS reader WHERE reader.name = {name} \
                 AND reader.token < next.token AND reader.kind = {SHARED} \
                 AND reader.attempt NOT IN ({ids})) END"
            ),
        };
        format!(
            "SELECT {NOTIFY} FROM (SELECT DISTINCT client, name FROM ({next}) AS woken \
             WHERE attempt NOT IN ({ids}) AND client <> {own}) AS woken;"
        )
    }

    /// As [`wake`](Self::wake) for several queues, if all who leave are writers.
    pub(super) fn wake_after_writers(self, names: &str, ids: &str, client: Uuid) -> String {
        if self.0 != Dialect::Postgres {
            return String::new();
        }
        let own = self.id(client);
        format!(
            "SELECT {NOTIFY} FROM (SELECT DISTINCT client, name FROM distlock_v1_entries AS next \
             WHERE name IN ({names}) AND attempt NOT IN ({ids}) AND client <> {own} \
             AND token <= COALESCE((SELECT MIN(token) FROM distlock_v1_entries AS writer \
             WHERE writer.name = next.name AND writer.kind = {EXCLUSIVE} \
             AND writer.attempt NOT IN ({ids})), token)) AS woken;"
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
