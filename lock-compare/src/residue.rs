//! Leftovers of locks in a store.

use distlock::Locks;
use lock_lab::AnyServer;

use crate::{Failure, Ground, Store};

/// The counted things of a store, for people.
pub(crate) fn what(store: Store) -> &'static str {
    match store {
        Store::Redis | Store::Etcd => "keys",
        Store::ZooKeeper => "ephemeral nodes",
        Store::MySql | Store::Postgres | Store::Sqlite => "rows",
        Store::Memory => "entries",
    }
}

/// One of them, in the singular.
pub(crate) fn one(store: Store) -> &'static str {
    match store {
        Store::Memory => "entry",
        other => what(other).trim_end_matches('s'),
    }
}

/// Counts the keys, nodes or rows, from the store's own counter if it has one.
pub(crate) async fn count(store: Store, ground: &Ground, locks: &Locks) -> Result<u64, Failure> {
    Ok(match ground.server() {
        Some(AnyServer::Redis(server)) => server.keys().await?.len() as u64,
        // The key of a client's session is there as long as the client, whatever it locks.
        Some(AnyServer::Etcd(server)) => {
            let keys = server.keys().await?;
            keys.iter().filter(|key| !key.starts_with(b"#session")).count() as u64
        }
        Some(AnyServer::ZooKeeper(server)) => server.counters().await?.get("ephemerals"),
        #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
        _ if store != Store::Memory => {
            let count = "SELECT count(*) FROM distlock_v1_entries";
            let mut sql = crate::bare::Sql::connect(store, &ground.url()).await?;
            sql.number(count, &[]).await?.unwrap_or_default().unsigned_abs()
        }
        _ => {
            let _ = store;
            entries(locks).await?
        }
    })
}

async fn entries(locks: &Locks) -> Result<u64, Failure> {
    let mut entries = 0;
    for name in locks.names("").await? {
        entries += locks.inspect(&name).await?.len() as u64;
    }
    Ok(entries)
}
