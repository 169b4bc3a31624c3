//! SQLite: a file, who may share it, and lost replies.

mod boot;
mod child;
#[cfg(feature = "properties")]
mod expiry;
mod killed;
mod processes;
#[cfg(feature = "properties")]
mod replies;
mod users;

use std::path::Path;

use lock_core::{Locks, Result, StoreUrl};
use lock_sql::{SqlConfig, SqlLock};

/// Connects to a file.
pub async fn driver(path: &Path) -> Result<SqlLock> {
    SqlLock::connect(SqlConfig::file(Some(path.to_owned()))).await
}

/// The same for people.
pub async fn locks(path: &Path) -> Locks {
    Locks::new(driver(path).await.unwrap())
}

/// Connects as a program does.
pub async fn by_url(url: &str) -> Result<SqlLock> {
    SqlLock::connect(SqlConfig::from_url(&StoreUrl::parse(url)?)?).await
}
