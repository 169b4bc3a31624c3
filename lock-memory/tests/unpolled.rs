//! An acquire that its caller does not poll, by virtual time.

use std::time::Duration;

use lock_core::{Error, Locks, LossReason};
use lock_memory::MemoryStore;

use crate::clients::poll_once;

const TTL: Duration = Duration::from_secs(2);

/// Returns for each entry of the store whether it holds: lock `a`'s holders and waiters.
fn queue(store: &MemoryStore) -> Vec<bool> {
    let contents = store.contents();
    contents.iter().flat_map(|(_, queue)| queue.iter().map(|entry| entry.holds)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_kept_for_its_ttl_and_given_back_then() {
    for (late, kept) in [(TTL / 2, true), (TTL * 9 / 10, true), (TTL + TTL / 4, false)] {
        let store = MemoryStore::new();
        let (a, b) = (Locks::new(store.client()), Locks::new(store.client()));
        let held = a.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
        let mut asleep = Box::pin(b.lock("a").unwrap().ttl(TTL).acquire());
        assert!(poll_once(&mut asleep).await.is_pending());
        // Much longer than a TTL: a waiter is renewed all the time.
        tokio::time::sleep(TTL * 5).await;
        assert_eq!(queue(&store), [true, false]);
        held.release().await.unwrap();
        tokio::time::sleep(late).await;
        assert_eq!(queue(&store), if kept { vec![true] } else { vec![] });
        match asleep.await {
            Ok(guard) if kept => assert!(guard.is_valid()),
            Err(Error::Lost { reason: LossReason::NotCollected, .. }) if !kept => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_was_lost_before_it_is_collected_is_an_error() {
    let store = MemoryStore::new();
    let locks = Locks::new(store.client());
    let held = Locks::new(store.client()).lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut asleep = Box::pin(locks.lock("a").unwrap().ttl(TTL).acquire());
    assert!(poll_once(&mut asleep).await.is_pending());
    tokio::time::sleep(TTL).await;
    held.release().await.unwrap();
    tokio::time::sleep(TTL / 4).await;
    store.delete(&lock_core::LockName::new("a").unwrap());
    tokio::time::sleep(TTL / 10).await;
    let lost = asleep.await;
    assert!(matches!(lost, Err(Error::Lost { reason: LossReason::EntryGone, .. })), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_acquire_whose_grant_was_not_collected_leaves_nothing() {
    let store = MemoryStore::new();
    let (a, b) = (Locks::new(store.client()), Locks::new(store.client()));
    let held = a.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut asleep = Box::pin(b.lock("a").unwrap().ttl(TTL).acquire());
    assert!(poll_once(&mut asleep).await.is_pending());
    tokio::time::sleep(TTL).await;
    held.release().await.unwrap();
    tokio::time::sleep(TTL / 4).await;
    assert_eq!(queue(&store), [true]);
    drop(asleep);
    tokio::time::sleep(TTL / 4).await;
    assert_eq!(queue(&store), []);
}
