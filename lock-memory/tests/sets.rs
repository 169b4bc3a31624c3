//! Several locks at once: all or nothing.

use std::time::Duration;

use lock_core::{Error, LockName};
use lock_memory::MemoryStore;

use crate::clients::locks;

#[tokio::test(start_paused = true)]
async fn one_guard_with_one_token_per_name() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let set = locks.all(["b", "a", "b"]).unwrap().acquire().await.unwrap();
    let names: Vec<_> = set.tokens().map(|(name, _)| name.as_str().to_owned()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(set.get("a").is_some() && set.get("c").is_none());
    assert!(locks.lock("a").unwrap().try_acquire().await.unwrap().is_none());
    set.release().await.unwrap();
    assert!(store.contents().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_vain_gives_back_its_locks() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let last = locks.lock("b").unwrap().acquire().await.unwrap();
    let set = locks.all(["a", "b"]).unwrap().wait(Duration::from_millis(50));
    let waited = set.acquire().await;
    assert!(matches!(waited, Err(Error::WaitTimeout { .. })), "{waited:?}");
    while store.contents().len() > 1 {
        tokio::task::yield_now().await;
    }
    last.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_lost_while_the_others_are_waited_for_ends_the_wait() {
    let store = MemoryStore::new();
    let locks = locks(&store);
    let last = locks.lock("b").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.all(["a", "b"]).unwrap().acquire());
    while locks.inspect("b").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    store.delete(&LockName::new("a").unwrap());
    let ended = waiting.await.unwrap();
    assert!(matches!(&ended, Err(Error::Lost { name, .. }) if name.as_str() == "a"), "{ended:?}");
    while locks.inspect("b").await.unwrap().len() > 1 {
        tokio::task::yield_now().await;
    }
    last.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_empty_set_and_bad_names_are_refused() {
    let locks = locks(&MemoryStore::new());
    assert!(matches!(locks.all([""; 0]), Err(Error::InvalidName { .. })));
    assert!(matches!(locks.all(["a", ""]), Err(Error::InvalidName { .. })));
}
