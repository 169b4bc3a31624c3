//! The queries for a database's own state.

use super::Script;
use crate::{
    layout::dialect::Dialect,
    wire::cautions::{UNLOGGED, conditions},
};

impl Script {
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
            "SELECT token FROM distlock_v1_entries WHERE name IS NULL; {};",
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
