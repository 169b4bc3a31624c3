//! The columns of the comparison.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A store that can take part.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    /// In this process.
    Memory,
    /// A file of this machine.
    Sqlite,
    /// Redis.
    Redis,
    /// etcd.
    Etcd,
    /// ZooKeeper.
    ZooKeeper,
    /// PostgreSQL.
    Postgres,
    /// MySQL; the private server is a MariaDB.
    MySql,
}

impl Store {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::Redis,
        Self::Etcd,
        Self::ZooKeeper,
        Self::MySql,
        Self::Postgres,
        Self::Sqlite,
        Self::Memory,
    ];

    /// The scheme of its URLs, and the feature that compiles it in.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "zookeeper",
            Self::Postgres => "postgres",
            Self::MySql => "mysql",
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "ZooKeeper",
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
        }
    }

    /// Whether it needs no server.
    pub fn is_embedded(self) -> bool {
        matches!(self, Self::Memory | Self::Sqlite)
    }

    /// Whether its driver is compiled in.
    pub fn is_compiled_in(self) -> bool {
        let store = distlock::Store::of_scheme(self.scheme());
        store.is_some_and(|store| store.compiled_in)
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Store {
    type Err = String;

    /// Reads a scheme or one of its aliases.
    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = distlock::Store::of_scheme(&text.to_lowercase()).map(|store| store.scheme);
        let store = Self::ALL.into_iter().find(|store| Some(store.scheme()) == scheme);
        store.ok_or_else(|| {
            let known = Self::ALL.map(Self::scheme).join(", ");
            format!("unknown store {text:?}; known are {known}")
        })
    }
}
