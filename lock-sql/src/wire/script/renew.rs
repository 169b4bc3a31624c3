//! Renewal of entries, and removal of entries that expired long ago.

use lock_core::{Clock, Instant};
use uuid::Uuid;

use super::Script;
use crate::layout::dialect::Dialect;

impl Script {
    /// Renews the entries of attempts that are still alive, and returns them. Also records when
    /// they were granted, where that is given. Unless it `waits`, an entry that another transaction has
    /// locked is left as it is.
    pub(crate) fn renew(self, attempts: &[(Uuid, Option<Instant>)], waits: bool) -> String {
        let (ids, now) = (self.ids(attempts.iter().map(|(id, _)| *id)), self.0.now());
        let dated = self.dated(attempts);
        let alive = format!(
            "SELECT attempt FROM distlock_v1_entries WHERE attempt IN ({ids}) AND expires > {now}"
        );
        let renew = match self.0 {
            // In this order, or it would lock all rows to find these.
            Dialect::MySql if !waits => format!(
                "UPDATE ({alive} FOR UPDATE SKIP LOCKED) AS free STRAIGHT_JOIN \
                 distlock_v1_entries AS renewed ON renewed.attempt = free.attempt \
                 SET renewed.expires = {now} + renewed.ttl{dated}; "
            ),
            Dialect::Postgres if !waits => format!(
                "UPDATE distlock_v1_entries AS renewed SET expires = {now} + ttl{dated} \
                 FROM ({alive} FOR NO KEY UPDATE SKIP LOCKED) AS free \
                 WHERE renewed.attempt = free.attempt; "
            ),
            // SQLite has one write at a time.
            _ => format!(
                "UPDATE distlock_v1_entries AS renewed SET expires = {now} + ttl{dated} \
                 WHERE attempt IN ({ids}) AND expires > {now}; "
            ),
        };
        renew + &self.alive(&ids)
    }

    /// Records when these attempts were granted, unless that is recorded already: a part of the
    /// `UPDATE` of `renewed` entries.
    fn dated(self, attempts: &[(Uuid, Option<Instant>)]) -> String {
        let when = |(attempt, granted): &(Uuid, Option<Instant>)| {
            Some(format!(" WHEN {} THEN {}", self.id(*attempt), self.time_of_day((*granted)?)))
        };
        let when: String = attempts.iter().filter_map(when).collect();
        match when.as_str() {
            "" => String::new(),
            _ => format!(", granted = COALESCE(renewed.granted, CASE renewed.attempt{when} END)"),
        }
    }

    /// The time of day at a past moment of this client.
    pub(super) fn time_of_day(self, at: Instant) -> String {
        format!("{} - {}", self.0.wall(), Clock::Boot.now().since(at).as_micros())
    }

    /// Returns the entries of these attempts that are alive.
    pub(crate) fn find(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        self.alive(&self.ids(attempts))
    }

    fn alive(self, ids: &str) -> String {
        let now = self.0.now();
        self.select(false, &format!("WHERE attempt IN ({ids}) AND expires > {now}"))
    }

    /// Removes entries that expired over a minute ago, of names that are no longer asked for.
    pub(crate) fn sweep(self) -> String {
        format!("DELETE FROM distlock_v1_entries WHERE expires < {} - 60000000;", self.0.now())
    }
}
