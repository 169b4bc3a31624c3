//! The value of a leader.

use lock_core::LockName;
use uuid::Uuid;

use super::Script;

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
        let change = format!(
            "UPDATE distlock_v1_entries SET value = {value}, version = {version} \
             WHERE attempt = {id} AND version < {version};"
        );
        change + &self.tell_observers(&self.name(name)) + &self.entries_of(&id)
    }

    /// Returns the first entry of a queue.
    pub(crate) fn observe(self, name: &LockName) -> String {
        let (name, columns) = (self.name(name), self.columns(true));
        format!(
            "SELECT {columns} FROM distlock_v1_entries WHERE name = {name} ORDER BY token LIMIT 1;"
        )
    }
}
