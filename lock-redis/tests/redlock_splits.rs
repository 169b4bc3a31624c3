//! Votes that are split between attempts, while the server that could decide is slow.

use std::time::Duration;

use crate::lab::{majority::*, mostly_below, until};

/// A client that patiently waits for answers. Those of the last server are on their way until the
/// end of the test.
async fn with_a_slow_server(five: &Five) -> Far {
    let far = Far::with(five, PATIENTLY).await;
    five.all_know(&far.locks).await;
    far.proxies[4].half_open();
    far
}

/// Gives two servers' votes to another holder.
async fn two_votes_for(five: &Five, other: &[u8]) {
    for node in &five.nodes[..2] {
        node.command(&[b"SET", b"orders", other, b"PX", b"60000"]).await.unwrap();
    }
}

#[tokio::test]
async fn a_split_does_not_wait_for_a_slow_server() {
    let five = Five::lent().await;
    let far = with_a_slow_server(&five).await;
    two_votes_for(&five, b"foreign").await;
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    let counted = five.nodes[0].counters().await.unwrap();
    let before = clock();
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert!(clock().since(before) < PATIENT, "{:?}", clock().since(before));
    // It asks once: it does not lead, and has no vote there to take back.
    let calls = async || five.nodes[0].counters().await.unwrap().since(&counted).get("cmd.evalsha");
    until(async || calls().await > 0).await;
    assert_eq!(calls().await, 1);
}

#[tokio::test]
async fn a_slow_server_decides_a_split_that_stays() {
    let five = Five::lent().await;
    let far = Far::with(&five, PATIENTLY).await;
    five.all_know(&far.locks).await;
    far.proxies[4].delay(Duration::from_millis(100));
    // The greatest id: any other attempt leads the split. Its holder takes no vote back.
    two_votes_for(&five, b"ffffffffffffffffffffffffffffffff:1:crashed").await;
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    let guard = lock.try_acquire().await.unwrap().expect("three votes of five");
    guard.release().await.unwrap();
}

/// Each client is close to two servers, and gets their votes. The fifth would decide.
#[tokio::test]
async fn one_of_two_attempts_that_split_the_votes_gets_the_lock_without_the_slow_server() {
    const FAR: Duration = Duration::from_millis(5);
    let five = Five::lent().await;
    let mut names = (0..).map(|n| format!("orders-{n}"));
    // The last of a try's rounds would begin after 1.7 s.
    mostly_below(Duration::from_millis(500), async || {
        // New clients each time: a server that stays silent counts as down before long.
        let (one, two) = (with_a_slow_server(&five).await, with_a_slow_server(&five).await);
        (0..2).for_each(|node| two.proxies[node].delay(FAR));
        (2..4).for_each(|node| one.proxies[node].delay(FAR));
        let mut slowest = Duration::ZERO;
        for name in names.by_ref().take(10) {
            let lock = |far: &Far| far.locks.lock(&*name).unwrap().ttl(LONG);
            let (one, two) = (lock(&one), lock(&two));
            let before = clock();
            let (one, two) = tokio::join!(one.try_acquire(), two.try_acquire());
            slowest = slowest.max(clock().since(before));
            assert!(one.unwrap().is_some() != two.unwrap().is_some(), "{name}: one of them");
        }
        one.proxies.iter().chain(&two.proxies).for_each(|proxy| proxy.heal());
        five.nothing_is_left_for(LONG).await;
        slowest
    })
    .await;
}
