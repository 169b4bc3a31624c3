//! Redlock on five servers: grants, tokens, faults, duplicates.

use std::{collections::HashSet, time::Duration};

use lock_core::{Error, LossReason};

use crate::lab::{majority::*, mostly_below, until, within};

#[tokio::test]
async fn a_lock_is_taken_renewed_and_released_on_all_servers() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    let holder = locks.inspect("orders").await.unwrap();
    assert_eq!((holder.len(), holder[0].holder.token), (1, Some(guard.token())));
    assert!(locks.lock("orders").unwrap().try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
    let again = locks.lock("orders").unwrap().acquire().await.unwrap();
    assert!(again.token() > guard_token(&holder));
}

fn guard_token(entries: &[lock_core::Entry]) -> lock_core::FencingToken {
    entries[0].holder.token.unwrap()
}

#[tokio::test]
async fn three_of_five_are_down_and_nothing_is_left_when_they_return() {
    let five = Five::lent().await;
    let far = Far::of(&five).await;
    for proxy in &far.proxies[..3] {
        // The requests arrive, the answers do not.
        proxy.half_open();
    }
    let lock = far.locks.lock("orders").unwrap().ttl(LONG).wait(Duration::from_secs(1));
    // Its limit, and one more second to look who has the lock.
    mostly_below(Duration::from_millis(2300), async || {
        let before = clock();
        let text = error_chain(&lock.acquire().await.unwrap_err());
        assert!(text.contains("2 of 5 nodes count, and 3 are needed"), "{text}");
        clock().since(before)
    })
    .await;
    far.proxies.iter().for_each(|proxy| proxy.heal());
    five.nothing_is_left_for(LONG).await;
}

#[tokio::test]
async fn the_same_server_twice_is_refused() {
    let five = Five::lent().await;
    let port = five.nodes[0].addr().port();
    let rest = &five.urls()[1..3];
    let twice = format!("redlock://127.0.0.1:{port},{},localhost:{port}", rest.join(","));
    let error = try_locks(&twice).await.unwrap_err();
    let Error::InvalidOption { option, allowed, .. } = &error else { panic!("{error}") };
    assert_eq!(option, "nodes");
    assert!(allowed.contains("it is the same server as"), "{error}");
    let twice = format!("redlock://127.0.0.1:{port},{},127.0.0.1:{port}", rest.join(","));
    let error = try_locks(&twice).await.unwrap_err().to_string();
    assert!(error.contains("listed twice"), "{error}");
}

#[tokio::test]
async fn too_few_servers_are_told_with_the_reason_of_each() {
    let five = Five::own().await;
    five.nodes[..3].iter().for_each(|node| node.kill());
    let error = five.try_locks().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let text = error_chain(&error);
    assert_eq!(text.matches("refused").count(), 3, "{text}");
}

#[tokio::test]
async fn votes_of_a_server_that_restarted_do_not_count() {
    let five = Five::own().await;
    let far = Far::of(&five).await;
    let near = five.locks().await;
    five.all_know(&far.locks).await;
    // A holder with the votes of the first three alone.
    far.proxies[3..].iter().for_each(|proxy| proxy.refuse());
    // None of its votes expires meanwhile.
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    let guard = lock.acquire().await.unwrap();
    five.nodes[0].kill();
    five.nodes[0].restart().await.unwrap();
    five.nodes[0].command(&[b"FLUSHALL"]).await.unwrap();
    // A client that has seen it before, and one that has not: both would have three votes.
    for client in [near, five.locks().await] {
        let before = five.nodes[0].counters().await.unwrap();
        let lock = client.lock("orders").unwrap().ttl(LONG);
        until(async || {
            assert!(!matches!(lock.try_acquire().await, Ok(Some(_))), "its vote counts");
            // It was asked and has voted.
            calls(&five.nodes[0], &before).await >= 2
        })
        .await;
    }
    drop(guard);
}

#[tokio::test]
async fn a_lock_whose_majority_is_gone_is_lost() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(TTL).acquire().await.unwrap();
    for node in &five.nodes[..3] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    assert_eq!(within(guard.lost()).await, LossReason::EntryGone);
    five.nothing_is_left_for(TTL).await;
}

#[tokio::test]
async fn a_renewal_wins_back_lost_votes() {
    // So long that no renewal by its time comes while the test waits.
    const TTL: Duration = Duration::from_secs(600);
    let five = Five::lent().await;
    let locks = try_locks(&format!("{}?max_ttl=10m", five.url())).await.unwrap();
    let guard = locks.lock("orders").unwrap().ttl(TTL).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    for pair in [[0, 1], [2, 3], [4, 0], [1, 2]] {
        for node in pair {
            five.nodes[node].command(&[b"FLUSHALL"]).await.unwrap();
        }
        // The next one asks those that answer after the majority.
        until(async || {
            guard.renew().await.unwrap();
            five.votes("orders").await == 5
        })
        .await;
    }
    guard.release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
}

#[tokio::test]
async fn a_slow_server_is_not_waited_for() {
    let five = Five::lent().await;
    let far = Far::with(&five, PATIENTLY).await;
    five.all_know(&far.locks).await;
    for slow in [0, 4] {
        // Its answers are still on their way at the end of the test.
        far.proxies[slow].half_open();
    }
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    for _ in 0..5 {
        let before = clock();
        let guard = lock.acquire().await.unwrap();
        let took = clock().since(before);
        assert!(took < PATIENT, "{took:?}");
        guard.release().await.unwrap();
    }
}

/// With delays that differ, the third server decides.
#[tokio::test]
async fn an_acquire_takes_as_long_as_its_slowest_needed_server() {
    let five = Five::lent().await;
    let far = Far::of(&five).await;
    five.all_know(&far.locks).await;
    for (proxy, millis) in far.proxies.iter().zip([30, 60, 150, 300, 450]) {
        proxy.delay(Duration::from_millis(millis));
    }
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    let needed = Duration::from_millis(2 * 150);
    mostly_below(needed * 13 / 10, async || {
        let before = clock();
        let guard = lock.acquire().await.unwrap();
        let took = clock().since(before);
        assert!(took >= needed, "{took:?}");
        guard.release().await.unwrap();
        took
    })
    .await;
}

#[tokio::test]
async fn a_free_lock_costs_two_requests_to_each_server() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    five.all_know(&locks).await;
    let lock = locks.lock("orders").unwrap().ttl(LONG);
    let mut before = Vec::new();
    for node in five.nodes.iter() {
        before.push(node.counters().await.unwrap());
    }
    for _ in 0..50 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    for (node, before) in five.nodes.iter().zip(before) {
        until(async || calls(node, &before).await >= 100).await;
        assert_eq!(calls(node, &before).await, 100);
    }
}

async fn calls(node: &lock_lab::Redis, before: &lock_lab::Counters) -> u64 {
    node.counters().await.unwrap().since(before).get("cmd.evalsha")
}

/// Attempts that ask at the same time split the votes: that must not go on.
#[tokio::test]
async fn a_crowd_gets_on() {
    let five = Five::lent().await;
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let locks = five.locks().await;
        for _ in 0..10 {
            let lock = locks.lock("orders").unwrap().ttl(LONG);
            crowd.spawn(async move {
                let guard = lock.acquire().await.unwrap();
                let token = guard.token();
                guard.release().await.unwrap();
                token
            });
        }
    }
    let before = clock();
    let tokens = within(crowd.join_all()).await;
    println!("40 of 4 clients in {:?}", clock().since(before));
    let different: HashSet<_> = tokens.iter().collect();
    assert_eq!(different.len(), 40);
    five.nothing_is_left_for(LONG).await;
}

#[tokio::test]
async fn votes_of_a_server_that_restarted_count_after_the_longest_ttl() {
    const MAX: Duration = Duration::from_secs(1);
    let five = Five::own().await;
    let locks = try_locks(&format!("{}?max_ttl=1s", five.url())).await.unwrap();
    five.nodes[3..].iter().for_each(|node| node.kill());
    let lock = locks.lock("orders").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    five.nodes[0].kill();
    let restarted = clock();
    five.nodes[0].restart().await.unwrap();
    // The wait may end first: it is an outage as long as a TTL.
    let guard = within(async {
        loop {
            match lock.acquire().await {
                Ok(guard) => return guard,
                Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
            }
        }
    })
    .await;
    assert!(clock().since(restarted) >= MAX, "{:?}", clock().since(restarted));
    guard.release().await.unwrap();
}

/// Answers take 100 ms: the close comes while the votes are under way.
#[tokio::test]
async fn a_close_during_an_acquire_leaves_no_votes() {
    let five = Five::lent().await;
    let far = Far::of(&five).await;
    far.proxies.iter().for_each(|proxy| proxy.delay(Duration::from_millis(100)));
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    let acquire = tokio::spawn(async move { lock.acquire().await.map(drop) });
    until(async || five.votes("orders").await >= 3).await;
    far.locks.close().await.unwrap();
    let _ = within(acquire).await;
    five.nothing_is_left_for(LONG).await;
}

/// In 8 s it would ask 200 times without a pause that grows.
#[tokio::test]
async fn a_waiter_asks_less_often_when_it_has_waited_for_long() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let held = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    let asked = async || {
        let counters = five.nodes.iter().next().unwrap().counters().await.unwrap();
        counters.get("cmd.evalsha")
    };
    let before = asked().await;
    let busy = locks.lock("orders").unwrap().wait(Duration::from_secs(8)).acquire().await;
    assert!(busy.is_err());
    let asked = asked().await - before;
    assert!(asked <= 130, "{asked}");
    held.release().await.unwrap();
}
