//! Helpers of the tests on a file and of the tests on servers.

pub mod burst;
#[path = "../../../tests/shared/contend.rs"]
pub mod contend;
pub mod counters;
pub mod floor;
pub mod grants;
#[cfg(all(feature = "mysql", feature = "postgres"))]
pub mod program;
pub mod said;
pub mod sizes;
mod turn;
pub mod vain;

use std::time::Duration;

use lock_core::{Result, StoreUrl};
use lock_sql::{SqlConfig, SqlLock};

pub use self::turn::turn;

/// Connects as a program does.
pub async fn connect(url: &str) -> Result<SqlLock> {
    SqlLock::connect(SqlConfig::from_url(&StoreUrl::parse(url)?)?).await
}

/// Waits until `is_so` is true.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("still not so: {what}"));
}
