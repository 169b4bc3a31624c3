//! Thousands of locks that end at once.

use std::time::Duration;

use lock_core::{LockSetGuard, Locks};
use lock_lab::{Counters, Proxy};
use lock_sql::Dialect;

use crate::{
    servers::{Database, costs::settled, eventually, locks, on_both},
    support,
};

// With more threads the first are removed while the others are being dropped.
on_both!(
    in one thread:
    lost_locks_are_removed_together,
    locks_that_are_dropped_together_are_removed_together,
    a_slow_removal_is_not_sent_again,
);

const TTL: Duration = Duration::from_secs(10);
/// Requests that were sent before the others came, or were not answered.
const MORE: u64 = 60;

/// How many locks end: in a long run as many as one client may lose.
fn locks_at_once() -> usize {
    lock_lab::size(3_000, 10_000)
}

/// Requests with a hundred entries each.
fn requests() -> u64 {
    locks_at_once() as u64 / 100
}

/// Takes all these locks.
async fn hold(locks: &Locks, ttl: Duration) -> Vec<LockSetGuard> {
    let at_once = locks.guarantees().names_at_once;
    let mut held = Vec::new();
    for set in 0..locks_at_once() / at_once {
        let names: Vec<_> = (0..at_once).map(|n| format!("{set}/{n}")).collect();
        let set = locks.all(&names).unwrap().ttl(ttl);
        held.push(set.try_acquire().await.unwrap().expect("a free set"));
    }
    assert!(held.iter().all(|set| set.is_valid()));
    held
}

/// Deletes without the deadlocked ones: InnoDB undoes one of two, which is sent again.
fn deletes(since: &Counters) -> u64 {
    since.get("cmd.delete") - since.get("deadlocks")
}

/// The client is cut off for longer than the locks' TTL.
async fn lost_locks_are_removed_together(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    let held = hold(&locks, TTL).await;
    proxy.cut();
    eventually("all are lost", async || !held.iter().any(|set| set.is_valid())).await;
    let before = server.counters().await.unwrap();
    drop(held);
    proxy.heal();
    // `close` waits for removals that are under way. Locks that were not removed in time have
    // expired.
    locks.close().await.unwrap();
    let since = server.counters().await.unwrap().since(&before);
    println!("{dialect:?}: {since}");
    assert!(deletes(&since) <= requests() + MORE, "{since}");
}

async fn locks_that_are_dropped_together_are_removed_together(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    let held = hold(&locks, TTL * 3).await;
    let before = server.counters().await.unwrap();
    drop(held);
    eventually("all are gone", async || server.entries().await == 0).await;
    let since = server.counters().await.unwrap().since(&before);
    println!("{dialect:?}: {since}");
    assert!(deletes(&since) <= requests() + MORE, "{since}");
}

/// Sent again, it would make a busy server slower.
async fn a_slow_removal_is_not_sent_again(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let locks = locks(&server.url_via(&proxy)).await;
    settled(&server, &locks).await;
    let guard = locks.lock("a").unwrap().ttl(TTL * 6).acquire().await.unwrap();
    let before = server.counters().await.unwrap();
    // More than the 2 s that other requests wait for.
    proxy.delay(Duration::from_millis(1200));
    guard.release().await.unwrap();
    let since = server.counters().await.unwrap().since(&before);
    assert_eq!(since.get("cmd.delete"), 1, "{since}");
}
