//! SQLite: a file, its users, and lost replies.

mod boot;
mod burst;
mod child;
mod commits;
mod counters;
mod expired;
#[cfg(feature = "properties")]
mod expiry;
mod floor;
mod full;
mod grants;
mod killed;
mod own_client;
mod paths;
mod processes;
mod replaced;
#[cfg(feature = "properties")]
mod replies;
mod sizes;
mod users;
mod vain;

use std::path::Path;

use lock_core::{Locks, Result};
use lock_sql::{SqlConfig, SqlLock};

pub use crate::support::{connect, eventually};

/// Connects to a file.
pub async fn driver(path: &Path) -> Result<SqlLock> {
    SqlLock::connect(SqlConfig::file(Some(path.to_owned()))).await
}

/// Connects to a file, and returns [`Locks`].
pub async fn locks(path: &Path) -> Locks {
    Locks::new(driver(path).await.unwrap())
}
