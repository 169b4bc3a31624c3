//! The reason of a timed-out wait, and its cost.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use lock_core::{Attempt, Clock, DistributedLock, Error, Kind, Locks};

use crate::lab::{beat::Beat, *};

const TTL: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_secs(3);

/// Time limit of the diagnosis at the end of a wait.
const ASKS: Duration = Duration::from_secs(1);
/// If tasks are later than this, there is no time for the diagnosis: some twenty steps, with the
/// proxy's.
const SLOW: Duration = Duration::from_millis(50);

/// Waits until the timeout. Returns whether the error names the holder and a place. It must, unless
/// the diagnosis had no answer within its time limit.
async fn in_vain(locks: &Locks) -> bool {
    let started = Clock::Boot.now();
    let error = locks.lock("orders").unwrap().ttl(TTL).wait(LIMIT).acquire().await.unwrap_err();
    let Error::WaitTimeout { holder, position, .. } = error else { panic!("{error}") };
    if holder.is_none() && position.is_none() {
        let took = Clock::Boot.now().since(started);
        assert!(took >= LIMIT + ASKS, "{took:?}");
        return false;
    }
    let named = holder.and_then(|holder| holder.description);
    assert_eq!(named.as_deref(), Some("the night shift"));
    assert!(position.is_some_and(|place| place > 0), "{position:?}");
    true
}

/// Makes all clients wait in vain at the same time.
async fn all_name_the_holder(clients: &[Locks]) {
    for _ in 0..5 {
        let beat = Beat::start();
        let wait = |locks: Locks| tokio::spawn(async move { in_vain(&locks).await });
        let waits: Vec<_> = clients.iter().cloned().map(wait).collect();
        let mut unnamed = 0;
        for wait in waits {
            unnamed += usize::from(!wait.await.unwrap());
        }
        let late = beat.late();
        println!("{unnamed} name nothing, tasks are late by {late:?}");
        if unnamed == 0 {
            return;
        }
        assert!(late > SLOW, "{unnamed} name nothing, tasks are late by {late:?}");
    }
    println!("the machine was too busy in each of the runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waits_in_vain_of_one_client_name_the_holder() {
    let (server, proxy, far, near) = far_and_near().await;
    let lock = Locks::of(near).lock("orders").unwrap().ttl(TTL).holder("the night shift");
    let held = lock.acquire().await.unwrap();
    proxy.delay(Duration::from_millis(1));
    let locks = Locks::of(far);
    all_name_the_holder(&vec![locks; 1000]).await;
    held.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_clients_that_wait_in_vain_name_the_holder() {
    let (server, proxy, _, near) = far_and_near().await;
    let lock = Locks::of(near).lock("orders").unwrap().ttl(TTL).holder("the night shift");
    let held = lock.acquire().await.unwrap();
    proxy.delay(Duration::from_millis(1));
    let url = server.url_via(&proxy);
    let connecting = stream::iter(0..300).map(|_| locks(&url)).buffer_unordered(30);
    let clients: Vec<_> = connecting.collect().await;
    all_name_the_holder(&clients).await;
    held.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_diagnosis_agrees_with_the_whole_queue() {
    let (server, one, two) = two_drivers().await;
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 2)] {
        let held = acquire_as(kind, &one, "orders", TTL).await.unwrap();
        let beside = match kind {
            Kind::Exclusive => None,
            kind => Some(acquire_as(kind, &two, "orders", TTL).await.unwrap()),
        };
        let first = Waiter::queued(&one, &server, "orders", TTL).await;
        let second = Waiter::queued(&two, &server, "orders", TTL).await;
        let queue = one.inspect(&name("orders")).await.unwrap();
        let mut ids: Vec<_> = queue.iter().rev().filter_map(|entry| entry.attempt).collect();
        ids.push(Attempt::new().id());
        let diagnosis = one.diagnose(&name("orders"), &ids).await.unwrap();
        let holder = diagnosis.holder.unwrap();
        let holders = queue.iter().filter(|entry| entry.holds);
        assert!(holders.map(|entry| &entry.holder).any(|h| *h == holder), "{kind:?}: {holder}");
        assert_eq!(diagnosis.places.len(), ids.len());
        let own = ids.iter().position(|id| *id == first.attempt.id()).unwrap();
        assert_eq!(diagnosis.places[own], Some(1), "{kind:?}");
        // A place is known only for the client's own attempts.
        let held_by_one = queue[0].attempt.and_then(|id| ids.iter().position(|i| *i == id));
        assert_eq!(diagnosis.places[held_by_one.unwrap()], Some(0), "{kind:?}");
        assert_eq!(diagnosis.places.last(), Some(&None));
        held.release().await.unwrap();
        if let Some(beside) = beside {
            beside.release().await.unwrap();
        }
        first.granted().await.release().await.unwrap();
        second.granted().await.release().await.unwrap();
    }
    let free = one.diagnose(&name("orders"), &[]).await.unwrap();
    assert_eq!(free, lock_core::Diagnosis::default());
}

#[tokio::test]
async fn a_diagnosis_costs_the_same_however_many_wait() {
    let (server, one, two) = two_drivers().await;
    let held = acquire(&one, "orders", TTL).await.unwrap();
    let own = Waiter::queued(&one, &server, "orders", TTL).await;
    let cost = async || {
        let before = server.counters().await.unwrap();
        one.diagnose(&name("orders"), &[own.attempt.id()]).await.unwrap();
        let calls = server.counters().await.unwrap().since(&before);
        ["evalsha", "get", "hget", "lrange", "lpos"].map(|c| calls.get(&format!("cmd.{c}")))
    };
    cost().await;
    let few = cost().await;
    let crowd: Vec<_> = (0..500).map(|_| Waiter::start(&two, "orders", TTL)).collect();
    until(async || queue_length(&server, "orders").await == 501).await;
    assert_eq!(cost().await, few);
    crowd.iter().for_each(|waiter| waiter.attempt.cancel());
    own.attempt.cancel();
    held.release().await.unwrap();
    nothing_is_left(&server).await;
}
