//! Connects to the database that a configuration names.

use lock_core::{Error, Result};

use crate::{
    config::{SqlConfig, Target},
    layout::schema::Grants,
    wire::{
        database::Database,
        own_client::{AnyPool, OwnPool},
    },
};

impl Database {
    /// Connects, and creates the tables if there are none.
    ///
    /// # Errors
    ///
    /// Same as [`SqlLock::connect`](crate::SqlLock::connect).
    pub(crate) async fn open(config: &SqlConfig) -> Result<(Self, Grants)> {
        match &config.target {
            #[cfg(feature = "sqlite")]
            Target::File { path } => {
                let file = super::sqlite::Sqlite::open(path.as_deref()).await?;
                // Each connection adds the column: a user that may write a file may alter its
                // tables.
                Ok((Self::Sqlite(Box::new(file)), Grants::Dated))
            }
            #[cfg(feature = "sqlite")]
            Target::Pool(OwnPool(AnyPool::Sqlite(pool))) => {
                let file = super::sqlite::Sqlite::of_pool(pool).await?;
                Ok((Self::Sqlite(Box::new(file)), Grants::Dated))
            }
            #[cfg(feature = "mysql")]
            Target::MySql(server) => Self::MySql(super::mysql::MySql::new(server)).prepared().await,
            #[cfg(feature = "mysql")]
            Target::Pool(OwnPool(AnyPool::MySql(pool))) => {
                Self::MySql(super::mysql::MySql::of_pool(pool)?).prepared().await
            }
            #[cfg(feature = "postgres")]
            Target::Pool(OwnPool(AnyPool::Postgres(pool))) => {
                Self::Postgres(Box::new(super::postgres::Postgres::of_pool(pool))).prepared().await
            }
            #[cfg(feature = "postgres")]
            Target::Postgres(server) => {
                Self::Postgres(Box::new(super::postgres::Postgres::new(server))).prepared().await
            }
            #[allow(unreachable_patterns, reason = "all features may be there")]
            _ => {
                let store = config.dialect().store();
                let what = format!("be used: build lock-sql with feature {store:?}");
                Err(Error::Unsupported { store, what })
            }
        }
    }

    #[cfg(any(feature = "mysql", feature = "postgres"))]
    async fn prepared(self) -> Result<(Self, Grants)> {
        let grants = super::server::prepare(&self).await?;
        Ok((self, grants))
    }
}
