//! The database of a client: the differences besides the language.

use std::path::Path;

use lock_core::Reach;

use crate::{layout::dialect::Dialect, wire::turns::Turns};

/// A database that runs scripts.
#[derive(Debug)]
pub(crate) enum Database {
    #[cfg(feature = "sqlite")]
    Sqlite(Box<super::sqlite::Sqlite>),
    #[cfg(feature = "mysql")]
    MySql(super::mysql::MySql),
    #[cfg(feature = "postgres")]
    Postgres(Box<super::postgres::Postgres>),
}

impl Database {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "mysql")]
            Self::MySql(_) => Dialect::MySql,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    pub(super) fn turns(&self) -> &Turns {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.turns(),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.turns(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.turns(),
        }
    }

    /// Whether the database answers.
    pub(crate) fn reach(&self) -> Reach {
        self.turns().reach.clone()
    }

    /// Checks that pushes still come, where the database pushes.
    pub(crate) fn check_pushes(&self) {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.check(),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => {}
        }
    }

    /// The database's name within this process, where its clients wake each other; `None` where the
    /// server wakes them.
    pub(crate) fn known_as(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Some(sqlite.real()),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => Some(mysql.address()),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
        }
    }

    /// The database, if it is one that pushes.
    #[cfg(feature = "postgres")]
    pub(crate) fn pushing(&self) -> Option<&super::postgres::Postgres> {
        match self {
            Self::Postgres(postgres) => Some(postgres),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Some(sqlite.path()),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => None,
        }
    }

    #[cfg(all(feature = "properties", feature = "sqlite"))]
    pub(crate) fn faults(&self) -> super::faults::Faults {
        match self {
            Self::Sqlite(sqlite) => sqlite.faults(),
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => super::faults::Faults::default(),
        }
    }

    /// Refuses all further scripts.
    pub(crate) fn refuse(&self) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => sqlite.refuse(),
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.refuse(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.refuse(),
        }
    }

    /// Ends the connections to a server properly.
    pub(crate) async fn quit(&self) {
        match self {
            // The file stays open until the last handle is dropped: the last close copies SQLite's
            // log into it and waits for the disk, which a process that ends need not do.
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => {}
            #[cfg(feature = "mysql")]
            Self::MySql(mysql) => mysql.quit().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.quit().await,
        }
    }
}
