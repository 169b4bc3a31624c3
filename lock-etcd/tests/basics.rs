//! Properties and costs of an etcd lock.

use std::time::Duration;

use lock_core::{Clock, Error, LossReason, Request};
use lock_etcd::client::Client;

use crate::support::*;

#[tokio::test]
async fn an_uncontended_lock_costs_one_transaction_and_one_delete() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    // The first lock of a TTL makes the session.
    locks.lock("warm-up").unwrap().acquire().await.unwrap().release().await.unwrap();
    costs(&etcd, 100, async || {
        for n in 0..50 {
            let guard = locks.lock(format!("job{}", n % 5)).unwrap().acquire().await.unwrap();
            guard.release().await.unwrap();
        }
    })
    .await;
    let now = etcd.counters().await.unwrap();
    assert_eq!((now.get("leases"), now.get("watchers")), (1, 0));
}

#[tokio::test]
async fn the_token_is_the_create_revision_of_the_key() {
    let etcd = etcd().await;
    let driver = driver(&format!("{}?prefix=ns/", etcd.url())).await;
    let lease = acquire(&driver, Request::new(name("a/b"), Duration::from_secs(10))).await;
    let token = i64::try_from(lease.token().value()).unwrap();
    assert_eq!(token, etcd.revision().await.unwrap());
    let key = keys(&etcd).await.remove(0);
    let leases = etcd.leases().await.unwrap();
    assert_eq!(key, format!("ns/a%2Fb/{:x}.0", leases[0]));
    lease.release().await.unwrap();
    until_clean(&etcd).await;
}

#[tokio::test]
async fn keys_are_used_again_so_that_the_index_of_etcd_does_not_grow() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    for _ in 0..20 {
        let guard = locks.lock("job").unwrap().acquire().await.unwrap();
        let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
        until_queued(&locks, "job", 2).await;
        let keys = keys(&etcd).await;
        assert!(keys.len() == 2 && keys.iter().any(|key| key.ends_with(".0")), "{keys:?}");
        assert!(keys.iter().any(|key| key.ends_with(".1")), "{keys:?}");
        guard.release().await.unwrap();
        soon(waiting).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn inspect_shows_holder_and_waiters_in_order_and_what_they_wrote_down() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let lock = locks.lock("job").unwrap();
    let guard = lock.clone().holder("the \"first\"").acquire().await.unwrap();
    let waiting = tokio::spawn(lock.holder("the second").acquire());
    until_queued(&locks, "job", 2).await;
    etcd.put(b"job/694d8a5c", b"").await.unwrap();
    let queue = locks.inspect("job").await.unwrap();
    let shown: Vec<_> = queue.iter().map(|entry| entry.holder.description.as_deref()).collect();
    assert_eq!(shown, [Some("the \"first\""), Some("the second"), None]);
    assert_eq!(queue[0].holder.token, Some(guard.token()));
    assert!(queue[0].attempt.is_some() && queue[0].holder.queued_at.is_some());
    assert_eq!(queue[0].holder.granted_at, queue[0].holder.queued_at, "it was alone");
    assert_eq!(queue[1].holder.granted_at, None);
    assert_eq!(queue[2], lock_core::Entry::new(None, lock_core::Holder::default()));
    guard.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    let holder = &locks.inspect("job").await.unwrap()[0].holder;
    assert_eq!((holder.token, holder.granted_at), (Some(second.token()), None), "it has waited");
    second.release().await.unwrap();
}

#[tokio::test]
async fn one_etcd_lease_for_each_ttl_and_client() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    until("connecting left none", || async { etcd.leases().await.unwrap().is_empty() }).await;
    let mut guards = Vec::new();
    for n in 0..20 {
        let lock = locks.lock(format!("job{n}")).unwrap();
        guards.push(lock.ttl(Duration::from_secs(5 + n % 2)).acquire().await.unwrap());
    }
    assert_eq!(etcd.leases().await.unwrap().len(), 2);
    drop((guards, locks));
    until("the leases are gone", || async { etcd.leases().await.unwrap().is_empty() }).await;
    until_clean(&etcd).await;
}

/// `docs/stores/etcd.md` says how many locks fill a database that nothing compacts.
#[tokio::test]
async fn an_acquire_with_its_release_adds_less_than_a_kilobyte() {
    const PAIRS: u64 = 1000;
    let etcd = etcd().await;
    let lock = locks(&etcd.url()).await.lock("orders").unwrap();
    let pairs = async |count| {
        for _ in 0..count {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
    };
    pairs(100).await;
    let before = etcd.counters().await.unwrap();
    pairs(PAIRS).await;
    // etcd writes in batches, ten a second.
    let added = async || etcd.counters().await.unwrap().since(&before).get("bytes_in_use") / PAIRS;
    until("they are written", async || added().await > 100).await;
    let added = added().await;
    println!("{added} bytes each");
    assert!(added < 1024, "{added}");
}

#[tokio::test]
async fn ttls_that_etcd_would_change_are_refused() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    // The shortest lease is one and a half elections: 1.5 s, in whole seconds.
    assert_eq!(*locks.guarantees().ttl.start(), Duration::from_secs(2));
    for (ttl, expected) in [(1000, "2s to 1h"), (2500, "whole seconds")] {
        let lock = locks.lock("job").unwrap().ttl(Duration::from_millis(ttl));
        let permit = locks.semaphore("permits", 3).unwrap().ttl(Duration::from_millis(ttl));
        // Others that use another number of permits may go; this mistake stays.
        let permit =
            tokio::time::timeout(PATIENCE, permit.acquire()).await.expect("it does not wait");
        for error in [lock.acquire().await.unwrap_err(), permit.unwrap_err()] {
            assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn an_etcd_with_slow_elections_has_longer_ttls() {
    let builder = lock_lab::Etcd::builder().in_memory();
    let etcd = builder.arg("--election-timeout").arg("4000").start().await.unwrap();
    let locks = locks(&etcd.url()).await;
    assert_eq!(*locks.guarantees().ttl.start(), Duration::from_secs(6));
}

#[tokio::test]
async fn more_ttls_than_a_client_takes_are_refused() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let with_ttl = |seconds| locks.lock("job").unwrap().ttl(Duration::from_secs(seconds));
    // Idle sessions make room, also the one that was renewed first.
    with_ttl(3).acquire().await.unwrap().release().await.unwrap();
    until("it is kept alive", || async {
        etcd.counters().await.unwrap().get("sent.LeaseKeepAlive") > 0
    })
    .await;
    for seconds in 10..80 {
        with_ttl(seconds).acquire().await.unwrap().release().await.unwrap();
    }
    until("idle ones are gone", || async { etcd.leases().await.unwrap().len() <= 64 }).await;
    let mut guards = Vec::new();
    for seconds in 100..164 {
        let lock = locks.lock(format!("job{seconds}")).unwrap();
        guards.push(lock.ttl(Duration::from_secs(seconds)).acquire().await.unwrap());
    }
    let error = with_ttl(200).acquire().await.unwrap_err().to_string();
    assert!(error.contains("64"), "{error}");
}

#[tokio::test]
async fn a_try_leaves_nothing() {
    let etcd = etcd().await;
    let (ours, theirs) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let guard = ours.lock("job").unwrap().acquire().await.unwrap();
    theirs.lock("warm-up").unwrap().acquire().await.unwrap().release().await.unwrap();
    let (before, revision) = (etcd.counters().await.unwrap(), etcd.revision().await.unwrap());
    assert!(theirs.lock("job").unwrap().try_acquire().await.unwrap().is_none());
    let now = etcd.counters().await.unwrap();
    assert_eq!(requests(&now, &before).iter().map(|(_, n)| n).sum::<u64>(), 2, "ours and revision");
    assert_eq!(etcd.revision().await.unwrap(), revision);
    guard.release().await.unwrap();
    let guard = theirs.lock("job").unwrap().try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    until_clean(&etcd).await;
}

#[tokio::test]
async fn a_closed_client_frees_its_locks_and_says_so() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    locks.driver().close().await.unwrap();
    assert_eq!(etcd.keys().await.unwrap(), Vec::<Vec<u8>>::new());
    assert_eq!(etcd.leases().await.unwrap(), Vec::<i64>::new());
    assert_eq!(soon(guard.lost()).await, LossReason::Closed);
    assert!(matches!(soon(waiting).await.unwrap(), Err(Error::Closed { .. })));
    let again = locks.lock("job").unwrap().acquire().await;
    assert!(matches!(again, Err(Error::Closed { .. })));
    assert!(matches!(locks.inspect("job").await, Err(Error::Closed { .. })));
    drop((guard, locks));
    until("its streams are closed", || async {
        etcd.counters().await.unwrap().get("watch_streams") == 0
    })
    .await;
}

#[tokio::test]
async fn many_idle_locks_cost_what_one_costs() {
    const BATCH: usize = 100;
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    // The limit of a keep-alive's answer is a quarter of the TTL: a late one would begin all
    // watches again.
    let ttl = Duration::from_secs(8);
    let mut guards = Vec::new();
    for batch in 0..lock_lab::size(10, 100) {
        let batch = (0..BATCH).map(|n| {
            let lock = locks.lock(format!("job{batch}-{n}")).unwrap().ttl(ttl);
            tokio::spawn(lock.acquire())
        });
        for guard in batch.collect::<Vec<_>>() {
            guards.push(guard.await.unwrap().unwrap());
        }
    }
    // Each key is watched in the end, so that a deletion is reported at once.
    let many = guards.len() as u64;
    until("all are watched", || async { etcd.counters().await.unwrap().get("watchers") == many })
        .await;
    let before = etcd.counters().await.unwrap();
    let pings = |now: &lock_lab::Counters| now.since(&before).get("msg.LeaseKeepAlive");
    until("it was renewed twice", || async { pings(&etcd.counters().await.unwrap()) >= 2 }).await;
    let now = etcd.counters().await.unwrap();
    assert_eq!(requests(&now, &before), []);
    assert_eq!(now.since(&before).get("msg.Watch"), 0);
    assert!(guards.iter().all(|guard| guard.is_valid()));
}

#[tokio::test]
async fn a_client_that_is_dropped_outside_of_any_runtime_frees_its_locks() {
    let etcd = etcd().await;
    let driver = driver(&format!("{}?ttl=60s", etcd.url())).await;
    let lease = acquire(&driver, Request::new(name("job"), Duration::from_secs(60))).await;
    // The end of the lock alone would leave the session. The session's end takes the lock with it.
    std::thread::spawn(move || drop((driver, lease))).join().unwrap();
    let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let end = Clock::Boot.now() + PATIENCE;
    while !client.leases().await.unwrap().leases().is_empty() {
        assert!(Clock::Boot.now() < end, "the session is left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_client_that_is_dropped_after_its_runtime_does_not_panic() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (etcd, driver) = runtime.block_on(async {
        let etcd = etcd().await;
        let driver = driver(&etcd.url()).await;
        (etcd, driver)
    });
    runtime.shutdown_background();
    drop(driver);
    drop(etcd);
}
