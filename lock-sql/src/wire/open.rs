//! Connects to the database that a configuration names.

use lock_core::{Error, Result};

#[cfg(feature = "mysql")]
use crate::wire::mysql::MySql;
#[cfg(feature = "postgres")]
use crate::wire::postgres::Postgres;
#[cfg(feature = "sqlite")]
use crate::wire::sqlite::Sqlite;
use crate::{
    config::{SqlConfig, Target},
    layout::dialect::Dialect,
    wire::{
        database::Database,
        given_client::{AnyPool, GivenPool},
        server::prepare,
    },
};

/// Connects, and creates the tables if there are none.
pub(crate) async fn open(config: &SqlConfig) -> Result<Box<dyn Database>> {
    let database: Box<dyn Database> = match &config.target {
        #[cfg(feature = "sqlite")]
        Target::File { path } => Box::new(Sqlite::open(path.as_deref()).await?),
        #[cfg(feature = "sqlite")]
        Target::Pool(GivenPool(AnyPool::Sqlite(pool))) => Box::new(Sqlite::of_pool(pool).await?),
        #[cfg(feature = "mysql")]
        Target::MySql(server) => Box::new(MySql::new(server)?),
        #[cfg(feature = "mysql")]
        Target::Pool(GivenPool(AnyPool::MySql(pool))) => Box::new(MySql::of_pool(pool)?),
        #[cfg(feature = "postgres")]
        Target::Postgres(server) => Box::new(Postgres::new(server)?),
        #[cfg(feature = "postgres")]
        Target::Pool(GivenPool(AnyPool::Postgres(pool))) => Box::new(Postgres::of_pool(pool)),
        #[allow(unreachable_patterns, reason = "all features may be there")]
        _ => {
            let store = config.dialect().store();
            let what = format!("be used: build distlock-sql with feature {store:?}");
            return Err(Error::Unsupported { store, what });
        }
    };
    if database.dialect() != Dialect::Sqlite {
        let connect = config.server().and_then(|server| server.timeouts.connect);
        prepare(&*database, connect.unwrap_or_default()).await?;
    }
    Ok(database)
}
