//! Connects to the database that a configuration names.

use lock_core::{Error, Result};

#[cfg(feature = "mysql")]
use crate::wire::mysql::MySql;
#[cfg(feature = "postgres")]
use crate::wire::postgres::Postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::wire::server::prepared;
#[cfg(feature = "sqlite")]
use crate::wire::sqlite::Sqlite;
use crate::{
    config::{SqlConfig, Target},
    layout::schema::Grants,
    wire::{
        database::Database,
        own_client::{AnyPool, OwnPool},
    },
};

/// Connects, and creates the tables if there are none. Returns whether they have the column
/// `granted`.
///
/// # Errors
///
/// Same as [`SqlLock::connect`](crate::SqlLock::connect).
pub(crate) async fn open(config: &SqlConfig) -> Result<(Box<dyn Database>, Grants)> {
    match &config.target {
        // Each connection adds the column: a user that may write a file may alter its tables.
        #[cfg(feature = "sqlite")]
        Target::File { path } => {
            Ok((Box::new(Sqlite::open(path.as_deref()).await?), Grants::Dated))
        }
        #[cfg(feature = "sqlite")]
        Target::Pool(OwnPool(AnyPool::Sqlite(pool))) => {
            Ok((Box::new(Sqlite::of_pool(pool).await?), Grants::Dated))
        }
        #[cfg(feature = "mysql")]
        Target::MySql(server) => prepared(Box::new(MySql::new(server))).await,
        #[cfg(feature = "mysql")]
        Target::Pool(OwnPool(AnyPool::MySql(pool))) => {
            prepared(Box::new(MySql::of_pool(pool)?)).await
        }
        #[cfg(feature = "postgres")]
        Target::Postgres(server) => prepared(Box::new(Postgres::new(server))).await,
        #[cfg(feature = "postgres")]
        Target::Pool(OwnPool(AnyPool::Postgres(pool))) => {
            prepared(Box::new(Postgres::of_pool(pool))).await
        }
        #[allow(unreachable_patterns, reason = "all features may be there")]
        _ => {
            let store = config.dialect().store();
            let what = format!("be used: build lock-sql with feature {store:?}");
            Err(Error::Unsupported { store, what })
        }
    }
}
