//! Changes of a held lock: from exclusive to shared and back, a leader's value, and the attempt to
//! which it belongs. A lock that is left to be adopted gets another one.

use lock_core::{Instant, LockName};
use uuid::Uuid;

use super::{Script, floor::above};
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

    /// Gives a living entry to another attempt, with a fresh TTL, and returns the entry, whichever
    /// attempt has it. Sent again, it finds the new attempt, and renews it. An entry with a token
    /// that is not above the token floor keeps its attempt: a raise looks for it there.
    ///
    /// `holder`: the client that is told of the entry's end from now on, and the holder's
    /// description; `None` leaves both as they are. `granted`: when it was granted, if its first
    /// request did not record it.
    pub(crate) fn hand_over(
        self,
        name: &LockName,
        token: u64,
        from: Uuid,
        to: Uuid,
        holder: Option<(Uuid, &str)>,
        granted: Option<Instant>,
    ) -> String {
        let (name, from, to, now) = (self.name(name), self.id(from), self.id(to), self.0.now());
        let owner = holder.map_or(String::new(), |(client, holder)| {
            let (client, holder) = (self.id(client), self.0.bytes(holder.as_bytes()));
            format!(", client = {client}, holder = {holder}")
        });
        let above = above();
        let granted = granted.map_or(String::new(), |at| {
            format!(", granted = COALESCE(granted, {})", self.time_of_day(at))
        });
        let change = format!(
            "UPDATE distlock_v1_entries SET attempt = {to}, expires = {now} + ttl{owner}{granted} \
             WHERE name = {name} AND token = {token} \
             AND (attempt = {to} OR attempt = {from} AND token > {above}) \
             AND kind = {EXCLUSIVE} AND expires > {now}; "
        );
        change + &self.select(false, &format!("WHERE name = {name} AND token = {token}"))
    }
}
