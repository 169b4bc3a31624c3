//! The reads of waiters, observers and operators, and those of the database's own state.

use lock_core::LockName;
use uuid::Uuid;

use super::Script;
use crate::{
    layout::dialect::Dialect,
    wire::cautions::{UNLOGGED, conditions},
};

/// How many entries of a queue are read to find the holders.
pub(crate) const HEAD: usize = 256;

impl Script {
    /// Returns the queues of these names, each up to this token. With `bury`, expired entries are
    /// removed first, but not while an attempt leaves: it would take an expired entry for one that
    /// stays, and wake no waiter.
    pub(crate) fn look(self, queues: &[(&LockName, u64)], bury: bool) -> String {
        let names: Vec<_> = queues.iter().map(|(name, _)| *name).collect();
        let dead = match bury {
            false => String::new(),
            true => self.after_arrivals_if_pushed(&names) + &self.bury(&self.names(names)),
        };
        let up_to = |(name, last): &(&LockName, u64)| {
            format!("(name = {} AND token <= {last})", self.name(name))
        };
        let queues: Vec<_> = queues.iter().map(up_to).collect();
        let queues = queues.join(" OR ");
        dead + &self.select(false, &format!("WHERE {queues} ORDER BY name, token"))
    }

    /// The whole queue of each name, in the order in which attempts are let in.
    pub(super) fn queues(self, names: &str, full: bool) -> String {
        self.select(full, &format!("WHERE name IN ({names}) ORDER BY name, token"))
    }

    /// Reads entries, which the rest of the statement names; their holders and values only if
    /// `full`.
    pub(super) fn select(self, full: bool, rest: &str) -> String {
        let texts = if full { "holder, value" } else { "NULL AS holder, NULL AS value" };
        let now = self.0.now();
        format!(
            "SELECT name, token, attempt, kind, weight, lim, expires - {now} AS alive, {texts}, \
             version, since, granted FROM distlock_v1_entries {rest};"
        )
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
        let ((from, to), now) = (self.range(prefix), self.0.now());
        let first = format!(
            "AS used WHERE name >= {from} AND name < {to} AND expires > {now} \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries AS earlier WHERE earlier.name = used.name \
             AND earlier.token < used.token AND earlier.expires > {now}) ORDER BY name"
        );
        self.select(false, &first)
    }

    /// Returns a number that changes when another connection changes anything at all, and when this
    /// is another connection than before. Only SQLite has one.
    pub(crate) fn version(self) -> String {
        format!("{} FROM pragma_data_version, temp.connection;", self.number("id + data_version"))
    }

    /// Returns what a commit outlives, as a number: 2 is a crash of the machine, 1 a crash of the
    /// server, 0 neither. Then, for each setting that weakens locks, whether the server has it.
    pub(crate) fn durability(self) -> String {
        let outlives = match self.0 {
            // It need not outlive a crash of the machine: the boot clock starts anew, and tokens
            // jump.
            Dialect::Sqlite => "2",
            Dialect::MySql => {
                // With a binary log, InnoDB relies on it for what was committed.
                "CASE WHEN @@log_bin = 1 AND @@sync_binlog <> 1 THEN 1 \
                 WHEN @@innodb_flush_log_at_trx_commit IN (1, 3) THEN 2 \
                 WHEN @@innodb_flush_log_at_trx_commit = 2 THEN 1 ELSE 0 END"
            }
            Dialect::Postgres => &format!(
                "CASE WHEN {UNLOGGED} THEN 0 WHEN current_setting('fsync') = 'on' THEN 2 ELSE 1 END"
            ),
        };
        let has = |condition| self.number(&format!("CASE WHEN {condition} THEN 1 ELSE 0 END"));
        let numbers = [self.number(outlives)].into_iter().chain(conditions(self.0).map(has));
        numbers.collect::<Vec<_>>().join("; ")
    }

    /// Returns foreign rows if a server of MySQL or MariaDB replicates another one, or did so before
    /// it was told to pause. Many users may not ask.
    pub(crate) fn replication(self) -> String {
        "SHOW /*M! ALL SLAVES STATUS */ /*!80022 REPLICA STATUS */;".to_owned()
    }

    /// Writes nothing, but is refused where a write would be.
    pub(crate) fn ping(self) -> String {
        self.0.transaction("UPDATE distlock_v1_entries SET version = version WHERE 1 = 0;")
    }

    /// Fails if a table is missing. Returns the number of counters for tokens.
    pub(crate) fn probe(self) -> String {
        format!(
            "SELECT token FROM distlock_v1_entries WHERE name IS NULL; \
             SELECT token FROM distlock_v1_marks WHERE name IS NULL; {};",
            self.number("(SELECT COUNT(*) FROM distlock_v1_slots WHERE slot >= 0)")
        )
    }

    /// Returns a number that is about no attempt.
    pub(super) fn number(self, number: &str) -> String {
        let none = self.0.bytes(b"");
        match self.0 {
            Dialect::Postgres => format!("SELECT {none} AS attempt, ({number})::bigint AS number"),
            _ => format!("SELECT {none} AS attempt, {number} AS number"),
        }
    }
}
