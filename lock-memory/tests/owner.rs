//! Re-entrance: an owner acquires again a lock that it holds. All others wait.

use std::time::Duration;

use lock_core::{Error, Locks, LossReason, Owner};
use lock_memory::MemoryStore;

use crate::clients::locks;

#[tokio::test(start_paused = true)]
async fn an_owner_counts_and_the_last_release_gives_back() {
    let locks = locks(&MemoryStore::new());
    let owner = Owner::new();
    let lock = locks.lock("a").unwrap().owner(&owner);
    let first = lock.acquire().await.unwrap();
    let second = lock.acquire().await.unwrap();
    let third = lock.try_acquire().await.unwrap().unwrap();
    assert_eq!((first.token(), first.token()), (second.token(), third.token()));
    first.release().await.unwrap();
    drop(third);
    assert!(second.is_valid());
    assert!(locks.lock("a").unwrap().try_acquire().await.unwrap().is_none());
    let token = second.token();
    second.release().await.unwrap();
    let again = lock.acquire().await.unwrap();
    assert!(again.token() > token, "a new grant");
}

#[tokio::test(start_paused = true)]
async fn without_an_owner_or_with_another_one_it_waits() {
    let locks = locks(&MemoryStore::new());
    let lock = locks.lock("a").unwrap().wait(Duration::from_millis(50));
    let owned = lock.clone().owner(&Owner::new());
    let _held = owned.acquire().await.unwrap();
    for other in [lock.clone(), lock.owner(&Owner::new())] {
        let waited = other.acquire().await;
        assert!(matches!(waited, Err(Error::WaitTimeout { .. })), "{waited:?}");
    }
    let other_name = locks.lock("b").unwrap().acquire().await.unwrap();
    assert_ne!(other_name.token(), _held.token());
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_owner_share_one_place_in_the_queue() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let held = there.lock("a").unwrap().acquire().await.unwrap();
    let owner = Owner::new();
    let tasks: Vec<_> =
        (0..5).map(|_| tokio::spawn(here.lock("a").unwrap().owner(&owner).acquire())).collect();
    while there.inspect("a").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    held.release().await.unwrap();
    let mut guards = Vec::new();
    for task in tasks {
        guards.push(task.await.unwrap().unwrap());
        assert_eq!(there.inspect("a").await.unwrap().len(), 1);
    }
    assert!(guards.windows(2).all(|pair| pair[0].token() == pair[1].token()));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_acquired_anew_and_all_guards_of_it_are_lost() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let lock = locks.lock("a").unwrap().owner(&Owner::new());
    let (first, second) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    store.delete(first.name());
    assert_eq!(
        (first.lost().await, second.lost().await),
        (LossReason::EntryGone, LossReason::EntryGone)
    );
    let third = lock.acquire().await.unwrap();
    assert!(third.token() > first.token());
    drop((first, second));
    assert!(third.is_valid(), "guards of a lost grant release nothing");
}

#[tokio::test(start_paused = true)]
async fn a_writer_may_read_and_a_reader_may_not_wait_for_itself() {
    let locks = locks(&MemoryStore::new());
    let owner = Owner::new();
    let (write, read) =
        (locks.lock("a").unwrap().owner(&owner), locks.shared("a").unwrap().owner(&owner));
    let mut writer = write.acquire().await.unwrap();
    let as_reader = read.acquire().await.unwrap();
    assert!(writer.downgrade().await.is_err(), "somebody else relies on it");
    drop(as_reader);
    writer.downgrade().await.unwrap();
    let refused = write.acquire().await.unwrap_err();
    assert!(refused.to_string().contains("try_upgrade"), "{refused}");
    assert!(writer.try_upgrade().await.unwrap());
    write.acquire().await.unwrap().release().await.unwrap();
    writer.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_while_another_task_of_the_owner_waits() {
    let store = MemoryStore::new();
    let (here, there) = (locks(&store), locks(&store));
    let _held = there.lock("a").unwrap().acquire().await.unwrap();
    let owner = Owner::new();
    let lock = here.lock("a").unwrap().owner(&owner);
    let waiting = tokio::spawn(lock.acquire());
    while there.inspect("a").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(lock.try_acquire().await.unwrap().is_none());
    let waited = lock.wait(Duration::from_millis(30)).acquire().await;
    assert!(matches!(waited, Err(Error::WaitTimeout { .. })), "{waited:?}");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_campaigns_again_proclaims_and_an_outage_fails_it() {
    let store = MemoryStore::new();
    let client = store.client();
    let faults = client.faults();
    let (here, there) = (Locks::new(client), locks(&store).election("a").unwrap());
    let election = here.election("a").unwrap().owner(&Owner::new());
    let first = election.campaign("first").await.unwrap();
    let value = async || there.leader().await.unwrap().map(|leader| leader.value);
    let second = election.campaign("second").await.unwrap();
    assert_eq!(value().await.unwrap(), b"second");
    faults.partition();
    let refused = election.campaign("third").await;
    assert!(matches!(refused, Err(Error::Unavailable { .. } | Error::Lost { .. })), "{refused:?}");
    faults.heal();
    drop((first, second));
    let other = there.campaign("other").await.unwrap();
    assert_eq!(value().await.unwrap(), b"other");
    assert!(election.try_campaign("fourth").await.unwrap().is_none());
    other.resign().await.unwrap();
}
