//! Waits that outlast outages, by virtual time.

use std::time::Duration;

use lock_core::{Clock, Error, LossReason};
use lock_memory::MemoryStore;

use crate::clients::client;

const TTL: Duration = Duration::from_secs(15);
/// One that ends while the client still waits for an answer, and one in which it tries again and
/// again.
const OUTAGES: [Duration; 2] = [Duration::from_secs(22), Duration::from_secs(200)];

/// Who holds the lock `a`, and who waits for it, in order.
fn line(store: &MemoryStore) -> Vec<String> {
    let entries = store.contents().into_iter().filter(|(name, _)| name.as_str() == "a");
    entries.flat_map(|(_, line)| line).filter_map(|entry| entry.holder.description).collect()
}

async fn line_becomes(store: &MemoryStore, expected: &[&str]) {
    while line(store) != expected {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_at_the_end_of_the_line() {
    for outage in OUTAGES {
        let store = MemoryStore::new();
        let ((locks, faults), (others, _)) = (client(&store), client(&store));
        let other = |who: &str| others.lock("a").unwrap().holder(who).acquire();
        let held = other("first").await.unwrap();
        let lock = locks.lock("a").unwrap().holder("cut off").ttl(TTL).wait_through_outages();
        let waiter = tokio::spawn(lock.acquire());
        line_becomes(&store, &["first", "cut off"]).await;
        let next = tokio::spawn(other("next"));
        line_becomes(&store, &["first", "cut off", "next"]).await;
        faults.partition();
        tokio::time::sleep(outage).await;
        assert!(!waiter.is_finished());
        assert_eq!(line(&store), ["first", "next"]);
        faults.heal();
        line_becomes(&store, &["first", "next", "cut off"]).await;
        held.release().await.unwrap();
        let next = next.await.unwrap().unwrap();
        next.release().await.unwrap();
        waiter.await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(store.contents(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_begins_anew() {
    for outage in OUTAGES {
        let store = MemoryStore::new();
        let ((locks, faults), (others, _)) = (client(&store), client(&store));
        let held = others.lock("b").unwrap().acquire().await.unwrap();
        let set = locks.all(["a", "b"]).unwrap().holder("set").ttl(TTL).wait_through_outages();
        let waiter = tokio::spawn(set.acquire());
        line_becomes(&store, &["set"]).await;
        faults.partition();
        tokio::time::sleep(outage).await;
        assert_eq!(line(&store), [""; 0], "what it held is lost");
        assert!(!waiter.is_finished());
        faults.heal();
        line_becomes(&store, &["set"]).await;
        held.release().await.unwrap();
        let both = waiter.await.unwrap().unwrap();
        assert!(both.is_valid());
        both.release().await.unwrap();
        assert_eq!(store.contents(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoke_ends_the_wait() {
    let store = MemoryStore::new();
    let ((locks, _), (others, _)) = (client(&store), client(&store));
    let _held = others.lock("a").unwrap().holder("first").acquire().await.unwrap();
    let lock = locks.lock("a").unwrap().holder("revoked").wait_through_outages();
    let waiter = tokio::spawn(lock.acquire());
    line_becomes(&store, &["first", "revoked"]).await;
    // It has been renewed many times.
    tokio::time::sleep(TTL * 10).await;
    let attempt = others.inspect("a").await.unwrap()[1].attempt.unwrap();
    assert!(others.revoke("a", attempt).await.unwrap());
    let told = waiter.await.unwrap();
    assert!(
        matches!(told, Err(Error::PlaceLost { reason: LossReason::EntryGone, .. })),
        "{told:?}"
    );
    tokio::time::sleep(TTL).await;
    assert_eq!(line(&store), ["first"]);
}

#[tokio::test(start_paused = true)]
async fn another_error_ends_the_wait() {
    let (locks, faults) = client(&MemoryStore::new());
    faults.partition();
    let waiter = tokio::spawn(locks.lock("a").unwrap().wait_through_outages().acquire());
    tokio::time::sleep(TTL * 10).await;
    assert!(!waiter.is_finished());
    faults.heal();
    faults.deny();
    let told = waiter.await.unwrap();
    assert!(matches!(told, Err(Error::Denied { op: "acquire", .. })), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_for_all_tries_together() {
    const LIMIT: Duration = Duration::from_secs(100);
    for (queued, healed) in [(false, false), (false, true), (true, false)] {
        let store = MemoryStore::new();
        let ((locks, faults), (others, _)) = (client(&store), client(&store));
        let _held = others.lock("a").unwrap().holder("first").acquire().await.unwrap();
        if !queued {
            faults.partition();
        }
        let began = Clock::Tokio.now();
        let lock = locks.lock("a").unwrap().holder("limited").ttl(TTL).wait(LIMIT);
        let waiter = tokio::spawn(lock.wait_through_outages().acquire());
        if queued {
            line_becomes(&store, &["first", "limited"]).await;
            tokio::time::sleep(LIMIT / 4).await;
            faults.partition();
        }
        tokio::time::sleep(LIMIT / 2).await;
        if healed {
            faults.heal();
        }
        let told = waiter.await.unwrap();
        let took = Clock::Tokio.now().since(began);
        assert!(took >= LIMIT && took <= LIMIT + Duration::from_secs(2), "{took:?}");
        match told {
            Err(error @ Error::Unavailable { op: "acquire", .. }) if !healed => {
                assert!(error.to_string().contains("no answer within 15s"), "{error}");
            }
            Err(Error::WaitTimeout { waited, holder, position: Some(1), .. }) if healed => {
                assert!(waited >= LIMIT, "{waited:?}");
                assert_eq!(holder.unwrap().description.as_deref(), Some("first"));
            }
            other => panic!("{other:?}"),
        }
        faults.heal();
        line_becomes(&store, &["first"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_or_is_drained_in_an_outage_leaves_nothing() {
    for drained in [true, false] {
        let store = MemoryStore::new();
        let ((locks, faults), (others, _)) = (client(&store), client(&store));
        let _held = others.lock("a").unwrap().holder("first").acquire().await.unwrap();
        let lock = locks.lock("a").unwrap().ttl(TTL).wait_through_outages();
        let set = locks.all(["a", "b"]).unwrap().ttl(TTL).wait_through_outages();
        let waiters = (tokio::spawn(lock.acquire()), tokio::spawn(set.acquire()));
        faults.partition();
        tokio::time::sleep(TTL * 10).await;
        if drained {
            // The store cannot confirm it: the waiters' earlier entries end by their TTL.
            assert!(locks.drain(TTL).await.unwrap_err().is_unavailable());
            let told = (waiters.0.await.unwrap().err(), waiters.1.await.unwrap().err());
            let is_closed = |error: Option<Error>| error.is_some_and(|error| error.is_closed());
            assert!(is_closed(told.0) && is_closed(told.1));
        } else {
            waiters.0.abort();
            waiters.1.abort();
        }
        faults.heal();
        tokio::time::sleep(TTL * 4).await;
        assert_eq!(line(&store), ["first"]);
        assert_eq!(store.contents().len(), 1);
    }
}
