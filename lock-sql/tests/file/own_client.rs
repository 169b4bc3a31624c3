//! Locks from a pool of the caller's, in the pool's file.

use std::time::Duration;

use lock_core::{Error, Locks};
use lock_sql::{
    SqlConfig, SqlLock,
    client::{
        self,
        sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions},
    },
};

use crate::{
    file::locks,
    support::contend::{acquire, contend},
};

/// The program's own work with its pool.
async fn works(pool: &SqlitePool) {
    client::query("CREATE TABLE IF NOT EXISTS data (id)").execute(pool).await.unwrap();
    client::query("INSERT INTO data VALUES (1)").execute(pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_use_the_file_of_a_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    works(&pool).await;
    let config = SqlConfig::from_client(&pool).ttl(Duration::from_secs(10));
    let driver = SqlLock::connect(config).await.unwrap();
    assert_eq!(driver.path(), Some(path.as_path()));
    let own = Locks::new(driver);
    let other = locks(&path).await;
    // The pool has no connection to spare.
    let busy = pool.acquire().await.unwrap();
    contend(&own, &other).await;
    drop(busy);
    works(&pool).await;
    own.close().await.unwrap();
    works(&pool).await;

    let own = Locks::new(SqlLock::with_client(&pool).await.unwrap());
    let held = acquire(&own, "held").await;
    pool.close().await;
    held.renew().await.unwrap();
    held.release().await.unwrap();
    contend(&own, &other).await;
}

#[tokio::test]
async fn a_pool_without_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.db");
    let memory = SqlitePool::connect("sqlite::memory:").await.unwrap();
    works(&memory).await;
    let later = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let later = SqlitePoolOptions::new().connect_lazy_with(later);
    for pool in [memory, later] {
        let refused = SqlLock::with_client(&pool).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { .. }), "{refused:?}");
        assert!(refused.to_string().contains("a file that all processes open"), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A pool that only reads, or that no other client may open, is a way to the file all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pool_settings_that_keep_others_out_are_overridden() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let other = locks(&path).await;
    let options = SqliteConnectOptions::new().filename(&path).read_only(true).immutable(true);
    let options = options.shared_cache(true);
    let pool = SqlitePoolOptions::new().connect_lazy_with(options);
    contend(&Locks::new(SqlLock::with_client(&pool).await.unwrap()), &other).await;
}
