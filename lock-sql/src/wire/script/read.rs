//! The reads of waiters, observers and operators.

use lock_core::LockName;
use uuid::Uuid;

use super::Script;

/// How many entries of a queue are read to find the holders.
pub(crate) const HEAD: usize = 256;

impl Script {
    /// Returns the queues of these names. With `bury`, expired entries are removed first, but not
    /// while an attempt leaves: it would take an expired entry for one that stays, and wake no
    /// waiter.
    pub(crate) fn look(self, names: &[LockName], bury: bool) -> String {
        let all: Vec<_> = names.iter().collect();
        let names = self.names(names);
        let dead = match bury {
            false => String::new(),
            true => self.after_arrivals_if_pushed(&all) + &self.bury(&names),
        };
        dead + &self.queues(&names, false)
    }

    /// Returns the first entry of a queue.
    pub(crate) fn observe(self, name: &LockName) -> String {
        let name = self.name(name);
        self.select(true, &format!("WHERE name = {name} ORDER BY token LIMIT 1"))
    }

    /// Returns a name's queue, with holders and values.
    pub(crate) fn inspect(self, name: &LockName) -> String {
        self.queues(&self.name(name), true)
    }

    /// Returns the first entries of a queue, with the holder of the very first, and the place of
    /// each of these attempts among all, as a number.
    ///
    /// The database goes through the queue once, up to the last of the attempts: no index counts
    /// entries.
    pub(crate) fn diagnose(self, name: &LockName, attempts: &[Uuid]) -> String {
        let (name, ids, now) = (self.name(name), self.ids(attempts.iter().copied()), self.0.now());
        let queue = format!("FROM distlock_v1_entries WHERE name = {name}");
        let nothing = self.0.maybe_bytes(None);
        format!(
            "SELECT name, token, attempt, kind, weight, lim, expires - {now} AS alive, \
             CASE WHEN token = (SELECT MIN(token) {queue}) THEN holder END AS holder, \
             {nothing} AS value, version, since, granted {queue} \
             ORDER BY token LIMIT {HEAD}; \
             SELECT attempt, place FROM (SELECT attempt, ROW_NUMBER() OVER (ORDER BY token) AS place \
             {queue} AND token <= (SELECT MAX(token) {queue} AND attempt IN ({ids}))) AS line \
             WHERE attempt IN ({ids});"
        )
    }

    /// Returns one entry of each name in use that starts with a prefix.
    pub(crate) fn used(self, prefix: &str) -> String {
        // No name contains the byte 0xFF.
        let from = self.0.bytes(prefix.as_bytes());
        let to = self.0.bytes(&[prefix.as_bytes(), b"\xff"].concat());
        let now = self.0.now();
        let first = format!(
            "AS used WHERE name >= {from} AND name < {to} AND expires > {now} \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries AS earlier WHERE earlier.name = used.name \
             AND earlier.token < used.token AND earlier.expires > {now}) ORDER BY name"
        );
        self.select(false, &first)
    }
}
