//! Several locks in one step: their costs, and networks that break on the way.

use std::time::Duration;

use lock_core::{Clock, LockName, LockSet, LockSetGuard, Locks, Result};
use lock_lab::{Proxy, ZooKeeper};
use lock_zk::client::Client;
use tokio::task::JoinHandle;

use crate::support::*;

const NAMES: [&str; 3] = ["x", "y", "z"];

fn set(locks: &Locks) -> LockSet {
    locks.all(NAMES).unwrap()
}

/// Returns the entries of each name, with their sequence numbers.
async fn nodes(raw: &Client) -> [Vec<String>; 3] {
    let mut nodes = [const { Vec::new() }; 3];
    for (name, nodes) in NAMES.iter().zip(&mut nodes) {
        let children = children(raw, &format!("/locks/{name}")).await;
        *nodes = children.into_iter().filter(|child| child.contains("-lock-")).collect();
    }
    nodes
}

/// Returns how many entries each name has.
async fn entries(raw: &Client) -> [usize; 3] {
    nodes(raw).await.map(|nodes| nodes.len())
}

async fn keep_all(server: &ZooKeeper, names: impl IntoIterator<Item = impl AsRef<str>>) {
    let directories = names.into_iter().map(|name| {
        let name = LockName::new(name).unwrap();
        format!("/locks/{}", name.escaped())
    });
    keep_each(server, directories).await;
}

#[tokio::test]
async fn three_free_names_are_eleven_requests() {
    let server = server().await;
    let locks = open(&server.url()).await;
    keep_all(&server, NAMES).await;
    let pair = || async { set(&locks).acquire().await.unwrap().release().await.unwrap() };
    // Lists, a creation with lists, the stat that servers before 3.9 do not send, and deletions.
    let packets = packets(&server, pair).await;
    assert!(packets == 3 + (1 + 3) + 1 + 3 || packets == 3 + (1 + 3) + 3, "{packets}");
    let (used, ()) = cost(&server, pair()).await;
    assert_eq!(used.get("requests.update"), 1 + 3, "{used}");
}

#[tokio::test]
async fn three_free_names_are_three_flights() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&server.url_via(&proxy)).await;
    keep_all(&server, NAMES).await;
    // Long beside what a busy machine takes.
    let one_way = Duration::from_millis(500);
    proxy.delay(one_way);
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let start = Clock::Boot.now();
        let guard = set(&locks).acquire().await.unwrap();
        least = least.min(Clock::Boot.now().since(start));
        guard.release().await.unwrap();
    }
    assert!(least >= one_way * 6 && least < one_way * 8, "{least:?}");
}

#[tokio::test]
async fn one_busy_name_is_enough_and_changes_nothing() {
    let server = server().await;
    let (locks, other, raw) =
        (open(&server.url()).await, open(&server.url()).await, raw(&server).await);
    for (busy, expected) in [("x", [1, 0, 0]), ("z", [0, 0, 1])] {
        let guard = other.lock(busy).unwrap().acquire().await.unwrap();
        let (used, ()) = cost(&server, async {
            assert!(set(&locks).try_acquire().await.unwrap().is_none());
        })
        .await;
        assert_eq!(used.get("requests.update"), 0, "{used}");
        assert_eq!(entries(&raw).await, expected);
        guard.release().await.unwrap();
    }
    set(&locks).try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

/// The waiter is first in line, but the news cannot reach it.
#[tokio::test]
async fn a_name_with_only_a_waiter_is_busy() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (locks, waiter) = (open(&server.url()).await, open(&server.url_via(&proxy)).await);
    let guard = locks.lock("y").unwrap().acquire().await.unwrap();
    let waiting = queue_up(&locks, waiter.lock("y").unwrap(), "y", 1).await;
    proxy.cut();
    guard.release().await.unwrap();
    assert!(set(&locks).try_acquire().await.unwrap().is_none());
    assert!(!waiting.is_finished());
    proxy.heal();
    let guard = soon("the waiter holds", waiting).await.unwrap().unwrap();
    assert!(guard.is_valid());
    assert!(set(&locks).try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

/// The nodes of the set are there for a moment, and one request removes them.
#[tokio::test]
async fn an_attempt_after_the_look_is_not_overtaken() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let (locks, other) = (open(&server.url_via(&proxy)).await, open(&server.url()).await);
    keep_all(&server, NAMES).await;
    let mut met = Vec::new();
    for last in ["x", "z"].repeat(3) {
        proxy.half_open();
        let before = server.counters().await.unwrap();
        let attempt = tokio::spawn(set(&locks).try_acquire());
        eventually("the set has looked", || async {
            server.counters().await.unwrap().since(&before).get("requests.read") >= 3
        })
        .await;
        let guard = other.lock(last).unwrap().acquire().await.unwrap();
        proxy.heal();
        assert!(soon("the answer", attempt).await.unwrap().unwrap().is_none());
        let used = server.counters().await.unwrap().since(&before);
        assert_eq!(entries(&raw).await, NAMES.map(|name| usize::from(name == last)));
        met.push((last, used.get("requests.update")));
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
    // The other client's node; the nodes of the set come and go, unless another client sent the
    // reads.
    assert!(met.contains(&("x", 3)) && met.contains(&("z", 3)), "{met:?}");
}

#[tokio::test]
async fn the_most_and_longest_names_are_one_request() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let names: Vec<_> = (0..locks.guarantees().names_at_once)
        .map(|n| format!("{n:0width$}", width = 3) + &"/".repeat(LockName::MAX_BYTES - 3))
        .collect();
    keep_all(&server, &names).await;
    let all = locks.all(&names).unwrap();
    let (used, held) = cost(&server, all.acquire()).await;
    assert_eq!(used.get("requests.update"), 1, "{used}");
    held.unwrap().release().await.unwrap();
    // This is too much for one request: the locks are taken one after the other.
    let verbose = all.clone().holder("h".repeat(20_000)).acquire().await.unwrap();
    verbose.release().await.unwrap();
    assert_eq!(server.counters().await.unwrap().get("ephemerals"), 0);
}

/// Loses the answer to the creation of the nodes.
async fn unanswered(
    server: &ZooKeeper,
    proxy: &Proxy,
    raw: &Client,
) -> JoinHandle<Result<Option<LockSetGuard>>> {
    let locks = open(&server.url_via(proxy)).await;
    set(&locks).acquire().await.unwrap().release().await.unwrap();
    loop {
        proxy.delay(Duration::from_millis(200));
        let mut attempt = tokio::spawn(set(&locks).try_acquire());
        eventually("the server has created the nodes", || async { entries(raw).await == [1; 3] })
            .await;
        proxy.half_open();
        proxy.delay(Duration::ZERO);
        let Ok(answered) = tokio::time::timeout(Duration::from_millis(50), &mut attempt).await
        else {
            return attempt;
        };
        // This machine stood still for so long that the answer got through.
        proxy.heal();
        answered.unwrap().unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_unanswered_creation_is_found_again() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let attempt = unanswered(&server, &proxy, &raw).await;
    let (before, created) = (server.counters().await.unwrap(), nodes(&raw).await);
    proxy.reset();
    proxy.heal();
    let held = soon("the set", attempt).await.unwrap().unwrap().unwrap();
    assert!(held.is_valid());
    assert_eq!(nodes(&raw).await, created, "the nodes that were created before, and no others");
    let used = server.counters().await.unwrap().since(&before);
    // One renewal at most: after a reset it is a write until the server says that it stands alone.
    assert!(used.get("requests.update") <= 1, "{used}");
    held.release().await.unwrap();
    assert_eq!(entries(&raw).await, [0; 3]);
}

#[tokio::test]
async fn an_unanswered_creation_of_a_caller_that_left_is_swept() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let attempt = unanswered(&server, &proxy, &raw).await;
    attempt.abort();
    soon("the caller leaves", attempt).await.unwrap_err();
    proxy.reset();
    proxy.heal();
    eventually("nothing remains", || async { entries(&raw).await == [0; 3] }).await;
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

/// An operator deletes one of the nodes before the client knows of them.
#[tokio::test]
async fn an_unanswered_creation_that_lost_a_node_leaves_nothing() {
    let server = server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let attempt = unanswered(&server, &proxy, &raw).await;
    let node = children(&raw, "/locks/y").await.remove(0);
    raw.delete(&format!("/locks/y/{node}"), None).await.unwrap();
    proxy.reset();
    proxy.heal();
    let error = soon("the answer", attempt).await.unwrap().unwrap_err();
    assert!(lost_its_place(&error), "{error}");
    assert_eq!(entries(&raw).await, [0; 3]);
}
