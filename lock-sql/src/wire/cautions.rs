//! Settings of a server that weaken locks.

use crate::layout::dialect::Dialect;

/// A setting that weakens locks.
struct Setting {
    /// The condition under which a server has it.
    condition: &'static str,
    caution: &'static str,
    /// Whether it matters only where a standby may take over.
    at_failover: bool,
}

const fn always(condition: &'static str, caution: &'static str) -> Setting {
    Setting { condition, caution, at_failover: false }
}

const fn at_failover(condition: &'static str, caution: &'static str) -> Setting {
    Setting { condition, caution, at_failover: true }
}

const MYSQL: [Setting; 5] = [
    always(
        "@@innodb_flush_log_at_trx_commit NOT IN (1, 3)",
        "innodb_flush_log_at_trx_commit is not 1, so a crash of the machine may undo the newest grants \
         and tokens: set it to 1",
    ),
    always(
        "@@log_bin = 1 AND @@sync_binlog <> 1",
        "sync_binlog is not 1, so a crash of the machine may undo the newest grants and tokens: set \
         it to 1",
    ),
    always(
        "@@innodb_doublewrite = 0",
        "innodb_doublewrite is off, so a crash of the machine may destroy the tables: switch it on \
         unless the file system never tears a page",
    ),
    // MySQL's own plugin for semi-synchronous replication need not be there.
    at_failover(
        "/*M! @@rpl_semi_sync_master_enabled = 0 OR */ 1 = 0",
        "replication is asynchronous (rpl_semi_sync_master_enabled is off), so a failover loses the \
         newest grants and tokens: switch semi-synchronous replication on",
    ),
    always(
        "/*M! EXISTS (SELECT 1 FROM information_schema.global_status \
         WHERE variable_name = 'SLAVE_RUNNING' AND variable_value = 'ON') OR */ 1 = 0",
        REPLICA,
    ),
];

const POSTGRES: [Setting; 4] = [
    always(
        "current_setting('fsync') <> 'on'",
        "fsync is off, so a crash of the machine may undo grants and tokens, or destroy the tables: \
         set fsync = on",
    ),
    always(
        "current_setting('full_page_writes') <> 'on'",
        "full_page_writes is off, so a crash of the machine may destroy the tables: switch it on \
         unless the file system never tears a page",
    ),
    at_failover(
        "current_setting('synchronous_standby_names') = '' \
         OR current_setting('synchronous_commit') = 'local'",
        "no standby is synchronous (synchronous_standby_names is empty, or synchronous_commit is \
         local), so a failover loses the newest grants and tokens: name one",
    ),
    always(
        UNLOGGED,
        "the locks' tables are UNLOGGED, so a crash of the server empties them: ALTER TABLE .. SET \
         LOGGED",
    ),
];

/// The caution about a server that replicates another one.
pub(crate) const REPLICA: &str = "the server is a replica of another one and takes writes all the same (read_only is off), so \
     clients of the other one have locks of their own: name the primary";

/// The condition that PostgreSQL's tables are empty after a crash of the server.
pub(crate) const UNLOGGED: &str = "EXISTS (SELECT FROM pg_class WHERE relpersistence <> 'p' AND oid IN \
    ('distlock_v1_slots'::regclass, 'distlock_v1_entries'::regclass, \
    'distlock_v1_marks'::regclass))";

fn of(dialect: Dialect) -> &'static [Setting] {
    match dialect {
        Dialect::Sqlite => &[],
        Dialect::MySql => &MYSQL,
        Dialect::Postgres => &POSTGRES,
    }
}

/// The conditions under which a server has the settings that weaken locks.
pub(crate) fn conditions(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    of(dialect).iter().map(|setting| setting.condition)
}

/// The cautions about a server for which these [`conditions`] are true.
pub(crate) fn cautions(
    dialect: Dialect,
    are_true: impl IntoIterator<Item = bool>,
    is_managed: bool,
) -> Vec<String> {
    let counts =
        |(setting, is_true): &(&Setting, bool)| *is_true && (is_managed || !setting.at_failover);
    let found = of(dialect).iter().zip(are_true).filter(counts);
    found.map(|(setting, _)| setting.caution.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::dialect::Dialect::{MySql, Postgres};

    #[test]
    fn a_standby_that_lags_matters_only_where_it_may_take_over() {
        assert_eq!(cautions(Postgres, [true, false, true, false], false).len(), 1);
        assert_eq!(cautions(Postgres, [true, false, true, false], true).len(), 2);
        assert!(cautions(MySql, [false; 5], true).is_empty());
    }
}
