//! Replies that do not come: the attempt's id tells what has happened.

use std::time::Duration;

use lock_lab::Proxy;
use lock_sql::Dialect;

use crate::{Database, eventually, locks, on_both};

on_both!(an_unanswered_acquire, an_unanswered_release, many_clients_at_once);

const TTL: Duration = Duration::from_secs(5);

/// The commit is done, nobody says so: the second request finds the first one's entry.
async fn an_unanswered_acquire(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    let lock = locks.lock("a").unwrap().ttl(TTL);
    lock.acquire().await.unwrap().release().await.unwrap();
    proxy.half_open();
    let acquire = tokio::spawn(lock.acquire());
    eventually("an entry", async || server.entries().await == 1).await;
    proxy.heal();
    let guard = acquire.await.unwrap().unwrap();
    assert_eq!(server.entries().await, 1, "one attempt has two entries");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    assert_eq!(server.entries().await, 0);
}

async fn an_unanswered_release(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    proxy.half_open();
    let release = tokio::spawn(guard.release());
    eventually("no entry", async || server.entries().await == 0).await;
    proxy.heal();
    // "Not mine" means released.
    release.await.unwrap().unwrap();
}

/// They connect to an empty database together, and each of them creates its tables.
async fn many_clients_at_once(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let url = server.url();
    let connecting = (0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let locks = locks(&url).await;
            for n in 0..5 {
                let lock = locks.lock(format!("{}", n % 2)).unwrap().ttl(TTL);
                lock.acquire().await.unwrap().release().await.unwrap();
            }
        })
    });
    for done in connecting.collect::<Vec<_>>() {
        done.await.unwrap();
    }
    assert_eq!(server.entries().await, 0);
}
