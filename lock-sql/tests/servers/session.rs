//! Settings of a whole server with which every session begins.

use std::time::Duration;

use lock_sql::Dialect;

use crate::{
    servers::{Database, locks},
    support::contend::{acquire, contend},
};

/// Only some of the rows, only by a key, and no commit that is one.
const SETTINGS: &str = "SET GLOBAL sql_select_limit = 1; SET GLOBAL sql_safe_updates = 1; \
    SET GLOBAL completion_type = 'CHAIN'; SET GLOBAL max_join_size = 1";
const TTL: Duration = Duration::from_secs(9);
const LOCKS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_a_whole_mariadb_do_not_count() {
    let server = Database::start(Dialect::MySql).await;
    server.spoil();
    server.sql_as_admin(SETTINGS).await;
    let (one, other) = (locks(&server.url()).await, locks(&server.url()).await);
    contend(&one, &other).await;
    let mut held = Vec::new();
    for n in 0..LOCKS {
        let lock = one.lock(format!("{n}")).unwrap().ttl(TTL);
        held.push(lock.acquire().await.unwrap());
    }
    let waits = tokio::spawn(other.lock("0").unwrap().acquire());
    // Renewals keep all of them, by one statement.
    tokio::time::sleep(TTL).await;
    for guard in &held {
        assert!(guard.is_valid());
    }
    assert_eq!(other.names("").await.unwrap().len(), LOCKS);
    held.remove(0).release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    one.close().await.unwrap();
    for n in 0..LOCKS {
        acquire(&other, &format!("{n}")).await.release().await.unwrap();
    }
}
