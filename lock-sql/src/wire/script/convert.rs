//! Changes of a held lock: from exclusive to shared and back, and a leader's value.

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::layout::row::{EXCLUSIVE, SHARED};

impl Script {
    /// Makes an exclusive entry a shared one, and returns it.
    ///
    /// Changes only the grant with this token: an upgrade makes a new token, so a request that
    /// comes too late changes nothing.
    pub(crate) fn downgrade(
        self,
        name: &LockName,
        attempt: Uuid,
        token: u64,
        client: Uuid,
    ) -> String {
        let id = self.id(attempt);
        let change = format!(
            "UPDATE distlock_v1_entries SET kind = {SHARED} \
             WHERE attempt = {id} AND token = {token} AND kind = {EXCLUSIVE};"
        );
        self.after_arrivals_if_pushed(&[name])
            + &change
            + &self.wake_readers(&self.name(name), client)
            + &self.entries_of(&id)
    }

    /// Makes a shared entry an exclusive one with a new token if it is the only one, and returns
    /// it.
    ///
    /// Changes only the grant with this token, as [`downgrade`](Self::downgrade) does.
    pub(crate) fn upgrade(self, name: &LockName, attempt: Uuid, token: u64) -> String {
        let (id, bytes) = (self.id(attempt), self.name(name));
        let slot = self.0.slot(name.as_str().as_bytes());
        let wall = self.0.wall();
        // MySQL can read the table that it changes only through the temporary table that the LIMIT
        // needs.
        let alone = format!(
            "(SELECT COUNT(*) FROM (SELECT attempt FROM distlock_v1_entries WHERE name = {bytes} \
             LIMIT 2) AS present) = 1"
        );
        let change = format!(
            "UPDATE distlock_v1_entries SET kind = {EXCLUSIVE}, since = {wall}, granted = {wall}, \
             token = (SELECT token FROM distlock_v1_slots WHERE slot = {slot}) \
             WHERE attempt = {id} AND token = {token} AND kind = {SHARED} AND {alone} \
             AND EXISTS (SELECT 1 FROM distlock_v1_slots WHERE slot = {slot});"
        );
        let statements =
            self.next_token(name) + &self.bury(&bytes) + &change + &self.entries_of(&id);
        self.0.transaction(&statements)
    }

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
}
