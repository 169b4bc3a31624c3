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
pub(crate) async fn count(ground: &Ground, locks: &Locks) -> Result<u64, Failure> {
    Ok(match ground.server() {
        Some(AnyServer::Redis(server)) => server.keys().await?.len() as u64,
        // The key of a client's session is there as long as the client, whatever it locks.
        Some(AnyServer::Etcd(server)) => {
            let keys = server.keys().await?;
            keys.iter().filter(|key| !key.starts_with(b"#session")).count() as u64
        }
        Some(AnyServer::ZooKeeper(server)) => server.counters().await?.get("ephemerals"),
        #[cfg(feature = "mysql")]
        Some(AnyServer::MariaDb(server)) => rows::<sqlx::MySqlConnection>(&server.url()).await?,
        #[cfg(feature = "postgres")]
        Some(AnyServer::Postgres(server)) => rows::<sqlx::PgConnection>(&server.url()).await?,
        #[cfg(feature = "sqlite")]
        None if ground.url().starts_with("sqlite:") => {
            rows::<sqlx::SqliteConnection>(&ground.url()).await?
        }
        _ => entries(locks).await?,
    })
}

/// Counts the rows of distlock's table of entries.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
async fn rows<C>(url: &str) -> Result<u64, Failure>
where
    C: sqlx::Connection,
    for<'c> &'c mut C: sqlx::Executor<'c, Database = C::Database>,
    for<'q> <C::Database as sqlx::Database>::Arguments: sqlx::IntoArguments<C::Database>,
    (i64,): for<'r> sqlx::FromRow<'r, <C::Database as sqlx::Database>::Row>,
{
    let mut connection = C::connect(url).await?;
    let count = "SELECT count(*) FROM distlock_v1_entries";
    let (rows,): (i64,) = sqlx::query_as(count).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(rows.unsigned_abs())
}

async fn entries(locks: &Locks) -> Result<u64, Failure> {
    let mut entries = 0;
    for name in locks.names("").await? {
        entries += locks.inspect(&name).await?.len() as u64;
    }
    Ok(entries)
}
