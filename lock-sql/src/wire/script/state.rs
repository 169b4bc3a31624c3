//! The queries for a database's own state.

use super::Script;
use crate::layout::dialect::Dialect;

impl Script {
    /// Returns a number that changes when another connection changes anything at all, and when this
    /// is another connection than before. Only SQLite has one.
    pub(crate) fn version(self) -> String {
        format!("{} FROM pragma_data_version, temp.connection;", self.number("id + data_version"))
    }

    /// Returns what a commit outlives, as a number: 2 is a crash of the machine, 1 a crash of the
    /// server, 0 neither. Then the doubts about the server's settings.
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
            Dialect::Postgres => "CASE current_setting('fsync') WHEN 'on' THEN 2 ELSE 1 END",
        };
        format!("{}; {};", self.number(outlives), self.number(self.doubts()))
    }

    /// An expression: the sum of [`Doubt`](crate::wire::doubt::Doubt)s about a server's settings.
    fn doubts(self) -> &'static str {
        match self.0 {
            Dialect::Sqlite => "0",
            // MySQL's own plugin for semi-synchronous replication need not be there.
            Dialect::MySql => {
                "CASE WHEN @@innodb_flush_log_at_trx_commit IN (1, 3) THEN 0 ELSE 1 END \
                 + CASE WHEN @@log_bin = 1 AND @@sync_binlog <> 1 THEN 2 ELSE 0 END \
                 + CASE WHEN @@innodb_doublewrite = 0 THEN 4 ELSE 0 END \
                 /*M! + CASE WHEN @@rpl_semi_sync_master_enabled = 0 THEN 8 ELSE 0 END \
                 + CASE WHEN EXISTS (SELECT 1 FROM information_schema.global_status \
                 WHERE variable_name = 'SLAVE_RUNNING' AND variable_value = 'ON') \
                 THEN 256 ELSE 0 END */"
            }
            Dialect::Postgres => {
                "CASE current_setting('fsync') WHEN 'on' THEN 0 ELSE 16 END \
                 + CASE current_setting('full_page_writes') WHEN 'on' THEN 0 ELSE 32 END \
                 + CASE WHEN current_setting('synchronous_standby_names') = '' \
                   OR current_setting('synchronous_commit') = 'local' THEN 64 ELSE 0 END \
                 + CASE WHEN EXISTS (SELECT FROM pg_class WHERE relpersistence <> 'p' AND oid IN \
                   ('distlock_v1_slots'::regclass, 'distlock_v1_entries'::regclass)) \
                   THEN 128 ELSE 0 END"
            }
        }
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
