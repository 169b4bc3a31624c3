//! Servers that are down or stalled: what they cost, and what they leave behind.

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::Error;

use crate::lab::{bounded::bounded, majority::*, mostly_below, until};

/// The tasks of this test's runtime.
fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// The times of a connect, and of ten acquires and as many renewals.
async fn times(five: &Five, name: &str) -> [Duration; 3] {
    let mut taken = [Duration::ZERO; 3];
    let before = clock();
    let locks = five.locks().await;
    taken[0] = clock().since(before);
    let lock = locks.lock(name).unwrap().ttl(LONG);
    for _ in 0..10 {
        let before = clock();
        let guard = lock.acquire().await.unwrap();
        taken[1] += clock().since(before);
        let before = clock();
        guard.renew().await.unwrap();
        taken[2] += clock().since(before);
        guard.release().await.unwrap();
    }
    taken
}

/// Checks that two servers that are down change nothing but a little of the time.
async fn nobody_waits(five: &Five, down: &str, up: [Duration; 3]) {
    // A connect waits a moment for servers that a majority does not need. The limit is 3 s for a
    // connect, and 1 s for each of the ten requests.
    let more = [800, 300, 300].map(Duration::from_millis);
    // The most that one of the three took beyond what it may.
    let beyond = async || {
        let now = times(five, down).await;
        println!("{down}: {now:?}, with five up {up:?}");
        (0..3).map(|n| now[n].saturating_sub(up[n] * 4 + more[n])).max().unwrap()
    };
    mostly_below(Duration::from_nanos(1), beyond).await;
}

#[tokio::test]
async fn two_of_five_are_down_or_silent_and_nobody_waits_for_them() {
    let five = Five::own().await;
    let up = times(&five, "up").await;
    let two = [&five.nodes[1], &five.nodes[3]];
    two.iter().for_each(|node| node.stop());
    nobody_waits(&five, "silent", up).await;
    two.iter().for_each(|node| node.kill());
    nobody_waits(&five, "dead", up).await;
}

/// A client that has them as connected.
#[tokio::test]
async fn two_of_five_fall_silent_while_a_lock_is_held() {
    let five = Five::lent().await;
    let locks = try_locks(&format!("{}{PATIENTLY}", five.url())).await.unwrap();
    let lock = locks.lock("orders").unwrap().ttl(LONG);
    // A release waits for this long at most, whatever the limit of other requests is.
    mostly_below(Duration::from_secs(1), async || {
        five.all_know(&locks).await;
        let guard = lock.acquire().await.unwrap();
        five.nodes[..2].iter().for_each(|node| node.stop());
        let before = clock();
        guard.renew().await.unwrap();
        let renewed = clock();
        guard.release().await.unwrap();
        let released = clock().since(renewed);
        lock.acquire().await.unwrap().release().await.unwrap();
        // Below the time limit of a request.
        assert!(clock().since(before) < PATIENT, "{:?}", clock().since(before));
        five.nodes[..2].iter().for_each(|node| node.resume());
        five.nothing_is_left_for(LONG).await;
        released
    })
    .await;
}

#[tokio::test]
async fn a_slow_server_that_is_needed_takes_its_time_and_a_silent_one_the_limit() {
    let five = Five::lent().await;
    const LIMIT: Duration = Duration::from_secs(3);
    let far = Far::with(&five, "?request_timeout=3s").await;
    five.all_know(&far.locks).await;
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    far.proxies[3..].iter().for_each(|proxy| proxy.refuse());
    far.proxies[2].delay(Duration::from_millis(100));
    let before = clock();
    let guard = bounded("a slow server", LIMIT, lock.acquire()).await.unwrap();
    let took = clock().since(before);
    assert!(took >= Duration::from_millis(200), "{took:?}");
    guard.release().await.unwrap();
    far.proxies[2].cut();
    let before = clock();
    bounded("a silent server", LIMIT * 2, lock.try_acquire()).await.unwrap_err();
    let took = clock().since(before);
    assert!(took >= LIMIT * 9 / 10, "{took:?}");
}

/// Tasks that come and go while a client connects.
const FEW: usize = 10;

#[tokio::test]
async fn releases_start_no_tasks_for_a_server_that_is_down() {
    let five = Five::own().await;
    let locks = five.locks().await;
    let lock = locks.lock("orders").unwrap().ttl(LONG);
    five.nodes[4].kill();
    let before = alive();
    for _ in 0..100 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    until(async || alive() <= before + FEW).await;
    five.nodes[4].restart().await.unwrap();
    five.nothing_is_left_for(LONG).await;
}

#[tokio::test]
async fn votes_on_a_stalled_server_are_taken_back_by_one_task() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let before = alive();
    // It gets all requests, and acts on them later.
    five.nodes[4].stop();
    let acquires = (0..100).map(|n| locks.lock(format!("orders-{n}")).unwrap().ttl(LONG).acquire());
    let guards = join_all(acquires).await;
    for released in join_all(guards.into_iter().map(|guard| guard.unwrap().release())).await {
        released.unwrap();
    }
    until(async || alive() <= before + FEW).await;
    five.nodes[4].resume();
    five.nothing_is_left_for(LONG).await;
}

/// What lies in the sockets of stalled servers gives votes with a whole TTL when they go on.
#[tokio::test]
async fn servers_that_stall_for_longer_than_a_ttl_keep_no_votes() {
    let five = Five::lent().await;
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
    let five = Five::lent().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    for node in &five.nodes[..3] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    assert!(matches!(guard.renew().await, Err(Error::Lost { .. })));
    five.nothing_is_left_for(LONG).await;
}

#[tokio::test]
async fn a_loss_is_told_without_the_slow_servers() {
    let five = Five::lent().await;
    let far = Far::with(&five, PATIENTLY).await;
    let guard = far.locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    far.proxies[3..].iter().for_each(|proxy| proxy.half_open());
    for node in &five.nodes[..3] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    let before = clock();
    assert!(matches!(guard.renew().await, Err(Error::Lost { .. })));
    assert!(clock().since(before) < PATIENT, "{:?}", clock().since(before));
    far.proxies.iter().for_each(|proxy| proxy.heal());
    five.nothing_is_left_for(LONG).await;
}

/// A vote for which the server lacks the script is not asked for again: that would come after the
/// release.
#[tokio::test]
async fn a_server_that_has_lost_its_scripts_keeps_no_vote_and_gets_them_again() {
    let five = Five::lent().await;
    let far = Far::of(&five).await;
    five.all_know(&far.locks).await;
    let last = &five.nodes[4];
    far.proxies[4].delay(Duration::from_millis(150));
    last.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    let lock = far.locks.lock("orders").unwrap().ttl(LONG);
    lock.acquire().await.unwrap().release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
    // A renewal does not wait for a slow server's answer.
    far.proxies[4].delay(Duration::ZERO);
    five.all_know(&far.locks).await;
}

/// All scripts of a majority, in the middle of its work.
#[tokio::test]
async fn servers_that_have_all_lost_their_scripts_go_on() {
    let five = Five::lent().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    for node in five.nodes.iter() {
        node.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    }
    guard.renew().await.unwrap();
    for node in five.nodes.iter() {
        node.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    }
    let job = locks.lock("job").unwrap().ttl(LONG).try_acquire().await.unwrap().unwrap();
    job.release().await.unwrap();
    guard.release().await.unwrap();
    five.nothing_is_left_for(LONG).await;
}

/// All three servers that are left must have confirmed, also the slow ones.
#[tokio::test]
async fn another_client_gets_the_lock_right_after_a_release_beside_two_dead_servers() {
    let five = Five::own().await;
    five.nodes[3..].iter().for_each(|node| node.kill());
    let (far, near) = (Far::of(&five).await, five.locks().await);
    far.proxies[1..3].iter().for_each(|proxy| proxy.delay(Duration::from_millis(50)));
    let (one, two) =
        [&far.locks, &near].map(|locks| locks.lock("orders").unwrap().ttl(LONG)).into();
    for _ in 0..5 {
        one.acquire().await.unwrap().release().await.unwrap();
        let guard = two.try_acquire().await.unwrap().expect("it is free");
        guard.release().await.unwrap();
    }
}
