//! Marks of work that is done for a period: rows of a table of their own, by the time of day.

use std::time::Duration;

use lock_core::LockName;
use uuid::Uuid;

use super::Script;

impl Script {
    /// Writes the mark of a living entry in the place of an earlier one, removes marks whose period
    /// is over, and returns the entry if it is alive and its mark is there. The entry is locked
    /// first, so that no other transaction removes it before this one has ended.
    pub(crate) fn mark(
        self,
        name: &LockName,
        attempt: Uuid,
        token: u64,
        host: &str,
        left: Duration,
    ) -> String {
        let (name, id, host) = (self.name(name), self.id(attempt), self.0.bytes(host.as_bytes()));
        let (now, wall, left) = (self.0.now(), self.0.wall(), left.as_micros());
        let own = format!("WHERE attempt = {id} AND token = {token} AND expires > {now}");
        let statements = format!(
            "UPDATE distlock_v1_entries SET version = version {own}; \
             DELETE FROM distlock_v1_marks WHERE (name = {name} OR ends <= {wall}) \
             AND EXISTS (SELECT 1 FROM distlock_v1_entries {own}); \
             INSERT INTO distlock_v1_marks (name, token, host, done, ends) \
             SELECT {name}, token, {host}, {wall}, {wall} + {left} FROM distlock_v1_entries {own}; "
        );
        // On PostgreSQL, a renewal may bring an entry back to life that was over for the statements
        // before.
        let marked = format!(
            "{own} AND EXISTS \
             (SELECT 1 FROM distlock_v1_marks WHERE name = {name} AND token = {token})"
        );
        self.kept(&self.0.transaction(&(statements + &self.select(false, &marked))))
    }

    /// Returns the mark of a name.
    pub(crate) fn mark_of(self, name: &LockName) -> String {
        self.present(&format!("name = {}", self.name(name)))
    }

    /// Returns the marks of the names that start with a prefix.
    pub(crate) fn marks(self, prefix: &str) -> String {
        let (from, to) = self.range(prefix);
        self.present(&format!("name >= {from} AND name < {to}"))
    }

    /// Removes the mark of a name, and returns it.
    pub(crate) fn clear_mark(self, name: &LockName) -> String {
        let remove = format!("DELETE FROM distlock_v1_marks WHERE name = {};", self.name(name));
        self.kept(&self.0.transaction(&(self.mark_of(name) + &remove)))
    }

    fn present(self, which: &str) -> String {
        format!(
            "SELECT name, token, host, done, ends FROM distlock_v1_marks \
             WHERE {which} AND ends > {} ORDER BY name;",
            self.0.wall()
        )
    }
}
