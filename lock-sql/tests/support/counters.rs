//! Counters that somebody has emptied or set back: a token must not come before a holder's.

use lock_core::Locks;

use super::{contend::acquire, eventually};

/// `connect` makes another client, and `empty` removes all counters.
pub async fn emptied_counters_let_no_attempt_pass_a_holder(
    first: Locks,
    connect: impl AsyncFn() -> Locks,
    empty: impl AsyncFn(),
) {
    for _ in 0..3 {
        acquire(&first, "orders").await.release().await.unwrap();
    }
    let guard = acquire(&first, "orders").await;
    empty().await;
    let second = connect().await;
    let waits = tokio::spawn(second.lock("orders").unwrap().acquire());
    eventually("it waits", async || first.inspect("orders").await.unwrap().len() == 2).await;
    let entries = first.inspect("orders").await.unwrap();
    assert_eq!(entries[0].holder.token, Some(guard.token()));
    assert!(!entries[1].holds && !waits.is_finished());
    // The clients that are there find no counter.
    empty().await;
    for client in [&first, &second] {
        assert!(client.lock("orders").unwrap().try_acquire().await.unwrap().is_none());
        empty().await;
        let other = acquire(client, "other").await;
        assert!(other.token() > guard.token());
        other.release().await.unwrap();
    }
    let token = guard.token();
    guard.release().await.unwrap();
    let next = waits.await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

pub async fn counters_that_were_set_back_let_no_attempt_pass_a_holder(
    first: Locks,
    second: Locks,
    set_back: impl AsyncFn(),
) {
    for _ in 0..3 {
        acquire(&first, "orders").await.release().await.unwrap();
    }
    let guard = acquire(&first, "orders").await;
    set_back().await;
    let waits = tokio::spawn(second.lock("orders").unwrap().acquire());
    eventually("it is in the queue", async || first.inspect("orders").await.unwrap().len() == 2)
        .await;
    let entries = first.inspect("orders").await.unwrap();
    assert_eq!(entries[0].holder.token, Some(guard.token()));
    assert!(!entries[1].holds && !waits.is_finished());
    let token = guard.token();
    guard.release().await.unwrap();
    let next = waits.await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

pub async fn an_upgrade_without_a_counter_is_refused(locks: Locks, empty: impl AsyncFn()) {
    let mut reader = locks.shared("orders").unwrap().acquire().await.unwrap();
    let token = reader.token();
    empty().await;
    assert!(!reader.try_upgrade().await.unwrap());
    assert_eq!(reader.token(), token);
    reader.release().await.unwrap();
}
