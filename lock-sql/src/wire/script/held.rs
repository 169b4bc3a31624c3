//! The check that a program's own transaction makes before it commits.

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::layout::dialect::Dialect;

impl Script {
    /// Returns one row with one column if the grant is alive, and keeps its entry in place until
    /// the transaction ends; returns no row otherwise.
    ///
    /// A grant ends for others by a `DELETE`, of a release, a revoke or the next attempt, or by
    /// another value of a key, as with an adoption and an upgrade. So `FOR KEY SHARE` is enough on
    /// PostgreSQL, and lets renewals pass, which change no key. MySQL knows no such lock: there a
    /// renewal leaves the entry out meanwhile. SQLite has one writer, which this statement is from
    /// now on, also if the transaction has written to no table of the file yet.
    pub(crate) fn held(self, name: &LockName, token: u64, attempt: Uuid) -> String {
        let (name, id) = (self.name(name), self.id(attempt));
        let alive = format!("expires > {}", self.0.now());
        let grant = format!("WHERE name = {name} AND token = {token} AND attempt = {id}");
        match self.0 {
            // Of the file itself, not of one that is attached: that one commits by itself.
            Dialect::Sqlite => format!(
                "UPDATE main.distlock_v1_entries SET version = version {grant} AND {alive} \
                 RETURNING 1"
            ),
            Dialect::MySql => {
                format!("SELECT 1 FROM distlock_v1_entries {grant} AND {alive} LOCK IN SHARE MODE")
            }
            // A snapshot may have an older expiry. But an entry that others have removed since, it
            // cannot lock: that is an error.
            Dialect::Postgres => format!(
                "SELECT 1 FROM distlock_v1_entries {grant} AND ({alive} OR \
                 current_setting('transaction_isolation') NOT LIKE 'read %') FOR KEY SHARE"
            ),
        }
    }
}
