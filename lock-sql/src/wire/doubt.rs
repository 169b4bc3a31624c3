//! Settings of a server that weaken locks.

/// A setting of a server that weakens locks. The numbers are those of the script that asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub(crate) enum Doubt {
    FlushLog = 1,
    SyncBinlog = 2,
    Doublewrite = 4,
    SemiSync = 8,
    Fsync = 16,
    FullPageWrites = 32,
    NoSyncStandby = 64,
    Unlogged = 128,
    Replica = 256,
}

use Doubt::{
    Doublewrite, FlushLog, Fsync, FullPageWrites, NoSyncStandby, Replica, SemiSync, SyncBinlog,
    Unlogged,
};

const ALL: [Doubt; 9] = [
    FlushLog,
    SyncBinlog,
    Doublewrite,
    SemiSync,
    Fsync,
    FullPageWrites,
    NoSyncStandby,
    Unlogged,
    Replica,
];

impl Doubt {
    /// Whether a crash of the server itself makes it forget locks and tokens.
    pub(crate) fn forgets(doubts: u64) -> bool {
        Unlogged.is_in(doubts)
    }

    /// Returns a sentence about each doubt. Some only count where a standby may take over.
    pub(crate) fn cautions(doubts: u64, is_managed: bool) -> Vec<String> {
        let counts = |doubt: &&Self| {
            doubt.is_in(doubts) && (is_managed || !matches!(doubt, SemiSync | NoSyncStandby))
        };
        ALL.iter().filter(counts).map(|doubt| doubt.caution().to_owned()).collect()
    }

    fn is_in(self, doubts: u64) -> bool {
        doubts & self as u64 != 0
    }

    fn caution(self) -> &'static str {
        match self {
            FlushLog => {
                "innodb_flush_log_at_trx_commit is not 1, so a crash of the machine may undo the \
                 newest grants and tokens: set it to 1"
            }
            SyncBinlog => {
                "sync_binlog is not 1, so a crash of the machine may undo the newest grants and \
                 tokens: set it to 1"
            }
            Doublewrite => {
                "innodb_doublewrite is off, so a crash of the machine may destroy the tables: \
                 switch it on unless the file system never tears a page"
            }
            SemiSync => {
                "replication is asynchronous (rpl_semi_sync_master_enabled is off), so a failover \
                 loses the newest grants and tokens: switch semi-synchronous replication on"
            }
            Fsync => {
                "fsync is off, so a crash of the machine may undo grants and tokens, or destroy \
                 the tables: set fsync = on"
            }
            FullPageWrites => {
                "full_page_writes is off, so a crash of the machine may destroy the tables: switch \
                 it on unless the file system never tears a page"
            }
            NoSyncStandby => {
                "no standby is synchronous (synchronous_standby_names is empty, or \
                 synchronous_commit is local), so a failover loses the newest grants and tokens: \
                 name one"
            }
            Unlogged => {
                "the locks' tables are UNLOGGED, so a crash of the server empties them: ALTER \
                 TABLE .. SET LOGGED"
            }
            Replica => {
                "the server is a replica of another one and takes writes all the same (read_only is \
                 off), so clients of the other one have locks of their own: name the primary"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_that_lags_matters_only_where_it_may_take_over() {
        let doubts = Fsync as u64 + NoSyncStandby as u64;
        assert_eq!(Doubt::cautions(doubts, false).len(), 1);
        assert_eq!(Doubt::cautions(doubts, true).len(), 2);
        assert!(Doubt::cautions(0, true).is_empty());
    }
}
