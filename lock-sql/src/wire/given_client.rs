//! A pool of the caller's, as a source of options for the driver's own connections.

use std::{fmt, sync::Arc};

use lock_core::Result;
use sqlx::{Connection, Database, Pool};

use crate::layout::dialect::Dialect;

/// Returns the options of a new connection. Called for each one, since there may be a new password.
/// Fails if the password cannot be read.
pub(crate) type Way<C> = Arc<dyn Fn() -> Result<<C as Connection>::Options> + Send + Sync>;

/// A pool of the caller's: a `&sqlx::SqlitePool`, `&MySqlPool` or `&PgPool`. `Debug` does not show
/// the password.
///
/// Locks use its options, and none of its connections: [the front page](crate#your-own-client) says
/// why.
#[derive(Clone)]
pub struct GivenPool(pub(crate) AnyPool);

#[derive(Clone)]
pub(crate) enum AnyPool {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqlitePool),
    #[cfg(feature = "mysql")]
    MySql(sqlx::MySqlPool),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgPool),
}

impl GivenPool {
    pub(crate) fn dialect(&self) -> Dialect {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            AnyPool::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "mysql")]
            AnyPool::MySql(_) => Dialect::MySql,
            #[cfg(feature = "postgres")]
            AnyPool::Postgres(_) => Dialect::Postgres,
        }
    }
}

/// Returns the pool's options at the time of each call, changed to what locks need.
pub(crate) fn way<D: Database>(
    pool: &Pool<D>,
    change: fn(<D::Connection as Connection>::Options) -> <D::Connection as Connection>::Options,
) -> Way<D::Connection> {
    let pool = pool.clone();
    Arc::new(move || Ok(change(pool.connect_options().as_ref().clone())))
}

#[cfg(feature = "sqlite")]
impl From<&sqlx::SqlitePool> for GivenPool {
    fn from(pool: &sqlx::SqlitePool) -> Self {
        Self(AnyPool::Sqlite(pool.clone()))
    }
}

#[cfg(feature = "mysql")]
impl From<&sqlx::MySqlPool> for GivenPool {
    fn from(pool: &sqlx::MySqlPool) -> Self {
        Self(AnyPool::MySql(pool.clone()))
    }
}

#[cfg(feature = "postgres")]
impl From<&sqlx::PgPool> for GivenPool {
    fn from(pool: &sqlx::PgPool) -> Self {
        Self(AnyPool::Postgres(pool.clone()))
    }
}

/// The library's options show the password.
impl fmt::Debug for GivenPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenPool").field(&self.dialect().store()).finish()
    }
}
