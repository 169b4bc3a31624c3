//! Several locks by one transaction.

use std::time::Duration;

use lock_core::Clock;

use crate::support::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[tokio::test]
async fn a_free_set_is_one_transaction() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let set = locks.all(NAMES).unwrap();
    set.acquire().await.unwrap().release().await.unwrap();
    costs_or_lists(&etcd, 80, async || {
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            let start = Clock::Boot.now();
            set.acquire().await.unwrap().release().await.unwrap();
            longest = longest.max(Clock::Boot.now().since(start));
        }
        longest >= UNWATCHED
    })
    .await;
    until_clean(&etcd).await;
}

#[tokio::test]
async fn its_names_have_one_token() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let held = locks.all(NAMES).unwrap().acquire().await.unwrap();
    let tokens: Vec<_> = held.tokens().map(|(_, token)| token).collect();
    assert_eq!(tokens, [tokens[0]; 3]);
    for (name, token) in held.tokens() {
        let queue = locks.inspect(name).await.unwrap();
        assert_eq!((queue.len(), queue[0].holder.token), (1, Some(token)));
    }
    held.release().await.unwrap();
}

/// One of its entries is deleted before the client has asked again.
#[tokio::test]
async fn a_set_that_was_made_and_lost_a_part_since_is_not_held_and_leaves_nothing() {
    for gone in NAMES {
        let etcd = etcd().await;
        let (locks, proxy) = behind_proxy(&etcd, "?ttl=60s").await;
        locks.lock("warm-up").unwrap().acquire().await.unwrap().release().await.unwrap();
        proxy.half_open();
        let trying = tokio::spawn(locks.all(NAMES).unwrap().try_acquire());
        until("etcd has acted", || async { keys(&etcd).await.len() == 3 }).await;
        assert_eq!(etcd.delete_prefix(format!("{gone}/").as_bytes()).await.unwrap(), 1);
        proxy.reset();
        proxy.heal();
        assert!(soon(trying).await.unwrap().unwrap().is_none());
        until_clean(&etcd).await;
    }
}

#[tokio::test]
async fn more_names_than_a_transaction_has_room_for_are_acquired() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let at_once = locks.guarantees().names_at_once;
    for count in [at_once, at_once + 1, 128, 129] {
        let names: Vec<_> = (0..count).map(|n| format!("job{n}")).collect();
        let held = soon(locks.all(&names).unwrap().acquire()).await.unwrap();
        assert_eq!(keys(&etcd).await.len(), count);
        // One transaction, or one for each.
        let mut tokens: Vec<_> = held.tokens().map(|(_, token)| token).collect();
        tokens.dedup();
        assert_eq!(tokens.len(), if count > at_once { count } else { 1 });
        held.release().await.unwrap();
        until_clean(&etcd).await;
    }
}
