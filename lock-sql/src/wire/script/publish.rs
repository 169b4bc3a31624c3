//! The values of leaders, present and earlier ones.

use std::time::Duration;

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::layout::dialect::Dialect;

/// How long earlier values of leaders are kept for observers that have not seen them.
pub(super) const KEPT: Duration = Duration::from_secs(60);

impl Script {
    /// Sets a leader's value unless it has a newer one, and returns its entry.
    pub(crate) fn publish(
        self,
        name: &LockName,
        attempt: Uuid,
        version: u64,
        value: &[u8],
    ) -> String {
        let (id, value) = (self.id(attempt), self.0.bytes(value));
        let keep = self.keep(&format!("said.attempt = {id} AND said.version < {version}"));
        let change = format!(
            "UPDATE distlock_v1_entries SET value = {value}, version = {version} \
             WHERE attempt = {id} AND version < {version};"
        );
        let tell = self.tell_observers(&self.name(name));
        self.0.transaction(&(keep + &change + &tell + &self.own(&id)))
    }

    /// Keeps the values of entries that will be gone, for observers that have not seen them yet.
    pub(super) fn keep(self, which: &str) -> String {
        let (now, kept) = (self.0.now(), KEPT.as_micros());
        // An earlier sending may have kept them.
        let (insert, unless) = match self.0 {
            Dialect::MySql => ("INSERT IGNORE", ""),
            Dialect::Sqlite | Dialect::Postgres => ("INSERT", " ON CONFLICT DO NOTHING"),
        };
        format!(
            "DELETE FROM distlock_v1_values WHERE moment < {now} - {kept}; \
             {insert} INTO distlock_v1_values (name, token, version, value, holder, since, moment) \
             SELECT said.name, said.token, said.version, said.value, said.holder, said.since, {now} \
             FROM distlock_v1_entries AS said WHERE said.value IS NOT NULL AND {which}{unless};"
        )
    }

    /// Returns the values of leaders since the one with this token and version, and then the first
    /// entry of the queue. All are read at one moment: nothing gets lost in between.
    pub(crate) fn observe(self, name: &LockName, token: u64, version: u64) -> String {
        let (name, columns) = (self.name(name), self.columns(true));
        let (nobody, never) = (self.id(Uuid::nil()), self.0.no_number());
        format!(
            "SELECT * FROM (SELECT name, token, {nobody} AS attempt, 0 AS kind, 0 AS weight, \
             0 AS lim, 0 AS alive, holder, value, version, since, {never} AS granted FROM distlock_v1_values \
             WHERE name = {name} AND (token > {token} OR token = {token} AND version > {version}) \
             UNION ALL SELECT {columns} FROM distlock_v1_entries WHERE name = {name} AND token = \
             (SELECT MIN(token) FROM distlock_v1_entries WHERE name = {name})) AS seen \
             ORDER BY token, version;"
        )
    }
}

/// The condition that an entry is one of these and the first of its queue.
pub(super) fn leads_among(ids: &str) -> String {
    format!(
        "said.attempt IN ({ids}) AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries AS earlier \
         WHERE earlier.name = said.name AND earlier.token < said.token)"
    )
}
