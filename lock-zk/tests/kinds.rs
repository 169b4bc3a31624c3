//! Shared locks and permits: which release lets which waiter in, and what other clients see of it.

use lock_core::{Kind, LockGuard, Locks, Result, Semaphore};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::support::*;

type Waiter = JoinHandle<Result<LockGuard>>;

async fn queue_of(locks: &Locks, name: &str, length: usize) {
    eventually("so many stand in the queue", || async {
        locks.inspect(name).await.is_ok_and(|queue| queue.len() == length)
    })
    .await;
}

async fn reader(locks: &Locks, name: &str, length: usize) -> Waiter {
    let waiter = tokio::spawn(locks.shared(name).unwrap().acquire());
    queue_of(locks, name, length).await;
    waiter
}

async fn permit(locks: &Locks, semaphore: Semaphore, name: &str, length: usize) -> Waiter {
    let waiter = tokio::spawn(semaphore.acquire());
    queue_of(locks, name, length).await;
    waiter
}

/// The limit is shorter than the time after which a waiter looks by itself.
async fn at_once(what: &str, waiter: Waiter) -> LockGuard {
    soon(what, waiter).await.unwrap().unwrap()
}

/// Sorts a directory as Curator does, by the text after `lock-`; the first entry holds.
async fn curators_order(raw: &lock_zk::client::Client, directory: &str) -> Vec<String> {
    let mut entries = children(raw, directory).await;
    entries.sort_by_key(|entry| entry.rsplit_once("lock-").unwrap().1.to_owned());
    entries
}

#[tokio::test]
async fn foreign_clients_see_every_kind_as_a_lock_of_their_own() {
    let server = calm_server().await;
    let (locks, raw, name) = (open_calm(&server).await, raw(&server).await, fresh("seen"));
    let directory = format!("/locks/{name}");
    let first = locks.semaphore(&name, 3).unwrap().acquire_many(2).await.unwrap();
    let second = locks.semaphore(&name, 3).unwrap().acquire().await.unwrap();
    let theirs = foreign(&raw, &directory, &format!("_c_{}-lock-", Uuid::new_v4())).await;
    let waiter = reader(&locks, &name, 4).await;
    let order = curators_order(&raw, &directory).await;
    let parts = ["-p2.3-lock-", "-p1.3-lock-", "-lock-", "-r-lock-"];
    assert!(order.iter().zip(parts).all(|(entry, part)| entry.contains(part)), "{order:?}");
    assert!(theirs.ends_with(&order[2]));
    first.release().await.unwrap();
    second.release().await.unwrap();
    assert!(!waiter.is_finished(), "the foreign one holds");
    assert!(locks.shared(&name).unwrap().try_acquire().await.unwrap().is_none());
    raw.delete(&theirs, None).await.unwrap();
    at_once("the reader", waiter).await.release().await.unwrap();
}

#[tokio::test]
async fn a_downgraded_lock_stays_a_lock_for_foreign_clients() {
    let server = calm_server().await;
    let (here, there, raw) =
        (open_calm(&server).await, open_calm(&server).await, raw(&server).await);
    let name = fresh("downgraded");
    let mut guard = here.lock(&name).unwrap().acquire().await.unwrap();
    let waiter = reader(&there, &name, 2).await;
    let before = children(&raw, &format!("/locks/{name}")).await;
    guard.downgrade().await.unwrap();
    let beside = at_once("the reader behind", waiter).await;
    assert_eq!(children(&raw, &format!("/locks/{name}")).await, before, "same names and places");
    // A later attempt finds it out, too, with and without waiting.
    for locks in [&here, &there] {
        assert!(locks.shared(&name).unwrap().try_acquire().await.unwrap().is_some());
        locks.shared(&name).unwrap().acquire().await.unwrap().release().await.unwrap();
        assert!(locks.lock(&name).unwrap().try_acquire().await.unwrap().is_none());
    }
    let shown = there.inspect(&name).await.unwrap();
    assert!(shown.iter().all(|entry| entry.holds && entry.kind == Kind::Shared), "{shown:?}");
    // The write to the own node is no loss.
    eventually("the own nodes are watched", || async {
        server.counters().await.unwrap().get("watches") >= 4
    })
    .await;
    assert!(guard.is_valid() && beside.is_valid());
    beside.release().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn an_upgrade_moves_the_lock_to_a_new_node() {
    let server = calm_server().await;
    let (locks, raw, name) = (open_calm(&server).await, raw(&server).await, fresh("upgraded"));
    let directory = format!("/locks/{name}");
    let mut guard = locks.shared(&name).unwrap().acquire().await.unwrap();
    let before = (guard.token(), children(&raw, &directory).await);
    assert!(guard.try_upgrade().await.unwrap());
    let after = (guard.token(), children(&raw, &directory).await);
    assert!(after.0 > before.0 && after.1.len() == 1 && after.1 != before.1);
    let next = queue_up(&locks, locks.lock(&name).unwrap(), &name, 1).await;
    guard.renew().await.unwrap();
    guard.release().await.unwrap();
    at_once("the next writer", next).await.release().await.unwrap();
    assert!(children(&raw, &directory).await.is_empty());
}

/// Not even for a moment: other attempts would wait for a node of ours.
#[tokio::test]
async fn an_upgrade_that_is_refused_writes_nothing() {
    let server = calm_server().await;
    let (locks, raw, name) = (open_calm(&server).await, raw(&server).await, fresh("refused"));
    let directory = format!("/locks/{name}");
    let mut guard = locks.shared(&name).unwrap().acquire().await.unwrap();
    let beside = locks.shared(&name).unwrap().acquire().await.unwrap();
    let (_, before) = raw.get_children(&directory).await.unwrap();
    assert!(!guard.try_upgrade().await.unwrap());
    let (_, after) = raw.get_children(&directory).await.unwrap();
    assert_eq!((before.cversion, before.pzxid), (after.cversion, after.pzxid));
    assert!(guard.is_valid() && beside.is_valid());
    let token = guard.token();
    beside.release().await.unwrap();
    assert!(guard.try_upgrade().await.unwrap() && guard.token() > token);
}

#[tokio::test]
async fn an_admitted_waiter_lets_the_next_one_wait_for_holders() {
    let server = calm_server().await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(open_calm(&server).await);
    }
    let semaphore = |n: usize| clients[n].semaphore("next", 3).unwrap();
    let mut holders = Vec::new();
    for n in [0, 1, 0] {
        holders.push(semaphore(n).acquire().await.unwrap());
    }
    let mut waiters = Vec::new();
    for (n, locks) in clients.iter().enumerate().skip(2) {
        waiters.push(permit(locks, semaphore(n), "next", holders.len() + n - 1).await);
    }
    // Each release lets one waiter in, and the holders that came in before stay.
    let mut admitted = Vec::new();
    for waiter in waiters {
        holders.pop().unwrap().release().await.unwrap();
        admitted.push(at_once("the next in line", waiter).await);
        let queue = clients[0].inspect("next").await.unwrap();
        assert_eq!(queue.iter().filter(|entry| entry.holds).count(), 3);
    }
    for guard in admitted {
        guard.release().await.unwrap();
    }
}

/// The waiter right before leaves the queue, or ends with its client.
#[tokio::test]
async fn a_waiter_for_permits_inherits_the_place_of_the_one_before() {
    let server = calm_server().await;
    let (here, there) = (open_calm(&server).await, open_calm(&server).await);
    let doomed = open_calm(&server).await;
    let name = fresh("inherits");
    let semaphore = |locks: &Locks| locks.semaphore(&name, 2).unwrap();
    let one = semaphore(&here).acquire().await.unwrap();
    let two = semaphore(&here).acquire().await.unwrap();
    let leaves = permit(&there, semaphore(&there), &name, 3).await;
    let dies = permit(&doomed, semaphore(&doomed), &name, 4).await;
    let last = permit(&here, semaphore(&here), &name, 5).await;
    leaves.abort();
    queue_of(&here, &name, 4).await;
    doomed.close().await.unwrap();
    soon("the waiter is told", dies).await.unwrap().unwrap_err();
    assert!(!last.is_finished());
    two.release().await.unwrap();
    let last = at_once("the last one", last).await;
    one.release().await.unwrap();
    last.release().await.unwrap();
}

/// Same as for exclusive locks: the hand-over within a process does not wait for the server.
#[tokio::test]
async fn all_readers_of_the_same_client_hold_at_once() {
    let server = calm_server().await;
    let proxy = proxy(&server).await;
    let locks = open_calm_via(&server, &proxy).await;
    let guard = locks.lock("baton").unwrap().acquire().await.unwrap();
    let mut readers = Vec::new();
    for length in 2..5 {
        readers.push(reader(&locks, "baton", length).await);
    }
    let writer = queue_up(&locks, locks.lock("baton").unwrap(), "baton", 4).await;
    proxy.cut();
    let release = tokio::spawn(guard.release());
    let mut releases = vec![release];
    for reader in readers {
        let guard = at_once("a reader", reader).await;
        assert!(guard.is_valid() && !writer.is_finished());
        releases.push(tokio::spawn(guard.release()));
    }
    let writer = at_once("the writer", writer).await;
    assert!(releases.iter().all(|release| !release.is_finished()));
    proxy.heal();
    for release in releases {
        soon("the release", release).await.unwrap().unwrap();
    }
    writer.release().await.unwrap();
}

#[tokio::test]
async fn permits_are_passed_on_within_a_process() {
    let server = calm_server().await;
    let proxy = proxy(&server).await;
    let (locks, other) = (open_calm_via(&server, &proxy).await, open_calm(&server).await);
    let semaphore = locks.semaphore("passed", 2).unwrap();
    let theirs = other.semaphore("passed", 2).unwrap().acquire().await.unwrap();
    let ours = semaphore.acquire().await.unwrap();
    let next = permit(&other, semaphore.clone(), "passed", 3).await;
    eventually("the directory is watched", || async {
        server.counters().await.unwrap().get("watches") >= 6
    })
    .await;
    proxy.cut();
    let release = tokio::spawn(ours.release());
    let next = at_once("the next one", next).await;
    assert!(next.is_valid() && theirs.is_valid() && !release.is_finished());
    proxy.heal();
    soon("the release", release).await.unwrap().unwrap();
    next.release().await.unwrap();
    theirs.release().await.unwrap();
}
