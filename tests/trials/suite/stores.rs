//! The stores of the suite.

use std::{future::Future, pin::Pin};

use lock_core::properties::{Failure, Harness};
use lock_memory::{MemoryHarness, MemoryStore};

type Starting = Pin<Box<dyn Future<Output = Result<Box<dyn Harness>, Failure>> + Send>>;

/// One column of the table of results.
#[derive(Clone, Copy)]
pub struct Store {
    pub name: &'static str,
    /// Whether time is virtual. Only possible for a store in this process.
    pub virtual_time: bool,
    /// Of so many checks, one is played; `DISTLOCK_LONG` plays all.
    pub one_of: usize,
    pub start: fn() -> Starting,
}

/// Every store that is compiled in.
pub fn all() -> Vec<Store> {
    vec![
        Store { name: "memory", virtual_time: true, one_of: 1, start: memory },
        #[cfg(feature = "sqlite")]
        Store {
            name: "sqlite",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::file::sqlite()),
        },
        #[cfg(feature = "redis")]
        Store {
            name: "redis",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::redis("")),
        },
        #[cfg(feature = "redis")]
        Store {
            name: "redis_simple",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::redis("mode=simple")),
        },
        #[cfg(feature = "etcd")]
        Store {
            name: "etcd",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::etcd()),
        },
        #[cfg(feature = "zookeeper")]
        Store {
            name: "zookeeper",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::zookeeper()),
        },
        #[cfg(feature = "postgres")]
        Store {
            name: "postgres",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::postgres(false, None)),
        },
        #[cfg(feature = "postgres")]
        Store {
            name: "postgres_tls",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::postgres(true, None)),
        },
        #[cfg(feature = "postgres")]
        Store {
            name: "pgbouncer_session",
            virtual_time: false,
            one_of: 5,
            start: || Box::pin(crate::suite::lab::postgres(false, Some("session"))),
        },
        #[cfg(feature = "postgres")]
        Store {
            name: "pgbouncer_transaction",
            virtual_time: false,
            one_of: 5,
            start: || Box::pin(crate::suite::lab::postgres(false, Some("transaction"))),
        },
        #[cfg(feature = "mysql")]
        Store {
            name: "mariadb",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::mariadb(false)),
        },
        #[cfg(feature = "mysql")]
        Store {
            name: "mariadb_tls",
            virtual_time: false,
            one_of: 1,
            start: || Box::pin(crate::suite::lab::mariadb(true)),
        },
    ]
}

/// The features that are not compiled in.
pub fn missing() -> Vec<&'static str> {
    let stores = distlock::STORES.iter().filter(|store| !store.compiled_in);
    stores.map(|store| store.feature).collect()
}

fn memory() -> Starting {
    Box::pin(async {
        let harness: Box<dyn Harness> = Box::new(MemoryHarness::new(MemoryStore::new()));
        Ok(harness)
    })
}
