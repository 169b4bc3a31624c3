//! Servers that are down or stalled: what they cost, and what they leave behind.

mod majority;

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::Error;
use majority::*;

/// Longer than any test, so that nothing expires by itself.
const LONG: Duration = Duration::from_secs(30);

/// The tasks of this test's runtime.
fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Tasks that come and go while a client connects.
const FEW: usize = 10;

#[tokio::test]
async fn releases_start_no_tasks_for_a_server_that_is_down() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let lock = locks.lock("orders").unwrap();
    five.nodes[4].kill();
    let before = alive();
    for _ in 0..100 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    until(async || alive() <= before + FEW).await;
    five.nodes[4].restart().await.unwrap();
    five.nothing_is_left().await;
}

#[tokio::test]
async fn votes_on_a_stalled_server_are_taken_back_by_one_task() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let before = alive();
    // It gets all requests, and acts on them later.
    five.nodes[4].stop();
    let acquires = (0..100).map(|n| locks.lock(format!("orders-{n}")).unwrap().acquire());
    let guards = join_all(acquires).await;
    for released in join_all(guards.into_iter().map(|guard| guard.unwrap().release())).await {
        released.unwrap();
    }
    until(async || alive() <= before + FEW).await;
    five.nodes[4].resume();
    five.nothing_is_left_for(TTL).await;
}

/// What lies in the sockets of stalled servers gives votes with a whole TTL when they go on.
#[tokio::test]
async fn servers_that_stall_for_longer_than_a_ttl_keep_no_votes() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let lock = locks.lock("orders").unwrap().ttl(TTL);
    let stalled = clock();
    five.nodes[..3].iter().for_each(|node| node.stop());
    lock.wait(Duration::from_secs(1)).acquire().await.unwrap_err();
    let over = TTL + Duration::from_secs(3);
    until(async || clock().since(stalled) > over).await;
    five.nodes[..3].iter().for_each(|node| node.resume());
    five.nothing_is_left_for(TTL).await;
}

#[tokio::test]
async fn the_votes_that_a_lost_lock_still_has_are_given_back() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    for node in &five.nodes[..3] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    assert!(matches!(guard.renew().await, Err(Error::Lost { .. })));
    five.nothing_is_left_for(TTL).await;
}

#[tokio::test]
async fn a_loss_is_told_without_the_slow_servers() {
    let five = Five::start().await;
    let far = Far::of(&five).await;
    let guard = far.locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    far.proxies[3..].iter().for_each(|proxy| proxy.delay(Duration::from_millis(450)));
    for node in &five.nodes[..3] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    let before = clock();
    assert!(matches!(guard.renew().await, Err(Error::Lost { .. })));
    assert!(clock().since(before) < Duration::from_millis(300), "{:?}", clock().since(before));
    five.nothing_is_left_for(TTL).await;
}

/// Another client loads the scripts between the two sendings.
#[tokio::test]
async fn a_request_that_is_sent_again_after_the_release_leaves_no_vote() {
    const ACQUIRE: &str = include_str!("../src/majority/scripts/acquire.lua");
    const RELEASE: &str = include_str!("../src/majority/scripts/release.lua");
    let five = Five::start().await;
    let far = Far::of(&five).await;
    let last = &five.nodes[4];
    far.proxies[4].delay(Duration::from_millis(150));
    last.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    let before = last.counters().await.unwrap();
    let calls = async || last.counters().await.unwrap().since(&before).get("cmd.evalsha");
    let guard = far.locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || calls().await == 1).await;
    for script in [ACQUIRE, RELEASE] {
        last.command(&[b"SCRIPT", b"LOAD", script.as_bytes()]).await.unwrap();
    }
    guard.release().await.unwrap();
    // The release, and the request that is sent again.
    until(async || calls().await >= 3).await;
    five.nothing_is_left_for(TTL).await;
}
