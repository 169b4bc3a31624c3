//! Whom to wake when attempts leave a queue, or share it: PostgreSQL tells their clients, and the
//! others are polled. A client that is told looks whether it is let in (`queue::next`).

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

/// The channel for changes of a leader, or of its value.
pub(crate) const OBSERVERS: &str = "distlock_v1_leaders";
/// Tells a client that a queue has changed.
const NOTIFY: &str = "pg_notify('distlock_v1_' || encode(client, 'hex'), encode(name, 'hex'))";

/// The kind of the attempts that leave a queue, if known. It makes the query for the next ones
/// simpler.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Leavers {
    Writers,
    Permits,
    /// Also readers: a reader may be a writer by now.
    Anybody,
}

impl Leavers {
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
    /// Waits for requests that are about to enter one of these queues, so that no attempt is
    /// overlooked. Where clients are woken, also waits for requests that are about to leave: of two
    /// attempts that leave together, the second one sees which is next after both.
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

    /// Same as [`after_arrivals`](Self::after_arrivals) where clients are pushed; nothing where
    /// they poll.
    pub(super) fn after_arrivals_if_pushed(self, names: &[&LockName]) -> String {
        match self.0 {
            Dialect::Postgres => self.after_arrivals(names),
            Dialect::Sqlite | Dialect::MySql => String::new(),
        }
    }

    /// An id where clients are pushed; `None` where they poll.
    fn id_if_pushed(self, id: Uuid) -> Option<String> {
        (self.0 == Dialect::Postgres).then(|| self.id(id))
    }

    /// Wakes the other clients with an attempt that is let in when these attempts have left a
    /// queue. No attempt behind the first exclusive entry that stays is let in.
    pub(super) fn wake(self, name: &str, ids: &str, who: Leavers, client: Uuid) -> String {
        let Some(own) = self.id_if_pushed(client) else { return String::new() };
        let queue = format!("FROM distlock_v1_entries WHERE name = {name}");
        let first = format!(
            "SELECT * {queue} AND token <= COALESCE((SELECT MIN(token) {queue} \
             AND kind = {EXCLUSIVE} AND attempt NOT IN ({ids})), token)"
        );
        let next = match who {
            // A writer behind readers is woken in vain, which is cheaper than to find out.
            Leavers::Writers => first,
            // Attempts that have enough permits now and had not before.
            Leavers::Permits => format!(
                "SELECT * FROM (SELECT name, client, attempt, kind, lim, SUM(weight) OVER line AS before, \
                 SUM(weight) FILTER (WHERE attempt NOT IN ({ids})) OVER line AS now \
                 FROM ({first}) AS first WINDOW line AS (ORDER BY token)) AS counted \
                 WHERE kind <> {PERMIT} OR now <= lim AND before > lim"
            ),
            // When a reader leaves, other readers were let in before, or are not let in now.
            Leavers::Anybody => format!(
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

    /// Same as [`wake`](Self::wake) for several queues, if all attempts that leave are writers.
    pub(super) fn wake_after_writers(self, names: &str, ids: &str, client: Uuid) -> String {
        let Some(own) = self.id_if_pushed(client) else { return String::new() };
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
        let Some(own) = self.id_if_pushed(client) else { return String::new() };
        format!(
            "SELECT {NOTIFY} FROM (SELECT DISTINCT client, name FROM distlock_v1_entries AS reader \
             WHERE name = {name} AND kind = {SHARED} AND client <> {own} AND token < COALESCE((\
             SELECT MIN(token) FROM distlock_v1_entries AS other WHERE other.name = reader.name \
             AND other.kind <> {SHARED}), token + 1)) AS next;"
        )
    }

    pub(super) fn tell_victim(self, name: &str, attempt: Uuid) -> String {
        let Some(id) = self.id_if_pushed(attempt) else { return String::new() };
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
