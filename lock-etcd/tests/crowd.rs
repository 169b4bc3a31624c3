//! Many clients on one name, each with a connection of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{Clock, Error, Locks, Result};
use lock_lab::{Counters, Etcd, size};
use tokio::task::JoinHandle;

use crate::support::*;

/// Clients that have a session each, so that an acquire needs no other request.
async fn crowd(etcd: &Etcd, clients: usize) -> Vec<Locks> {
    let url = format!("{}?ttl=300s", etcd.url());
    let connect = (0..clients).map(|n| {
        let url = url.clone();
        async move {
            let locks = locks(&url).await;
            let own = locks.lock(format!("own{n}")).unwrap();
            own.acquire().await.unwrap().release().await.unwrap();
            locks
        }
    });
    soon(join_all(connect)).await
}

/// What a resource behind the lock sees.
#[derive(Default)]
struct Resource {
    held: AtomicBool,
    token: AtomicU64,
}

impl Resource {
    /// Acquires, uses the resource, and releases.
    fn take(self: &Arc<Self>, locks: &Locks) -> JoinHandle<Result<()>> {
        let (resource, lock) = (self.clone(), locks.lock("job").unwrap());
        tokio::spawn(async move {
            let guard = lock.acquire().await?;
            assert!(!resource.held.swap(true, SeqCst), "it is held twice");
            let (token, last) = (guard.token().value(), &resource.token);
            assert!(last.swap(token, SeqCst) < token, "an earlier one was overtaken");
            resource.held.store(false, SeqCst);
            guard.release().await
        })
    }
}

/// Waits until so many keys stand. It asks for the numbers of the server, which counts no message.
async fn until_keys(etcd: &Etcd, keys: u64) {
    until("they are queued", || async { etcd.counters().await.unwrap().get("keys") == keys }).await;
}

/// All clients wait for a lock, and have it one after the other. Returns what the server counts.
async fn hand_overs(etcd: &Etcd, clients: &[Locks]) -> Counters {
    let resource = Arc::new(Resource::default());
    let guard = clients[0].lock("job").unwrap().acquire().await.unwrap();
    until_quiet(etcd).await;
    let before = etcd.counters().await.unwrap();
    let waiting: Vec<_> = clients[1..].iter().map(|locks| resource.take(locks)).collect();
    until_keys(etcd, before.get("keys") + waiting.len() as u64).await;
    let (count, began) = (waiting.len(), Clock::Boot.now());
    guard.release().await.unwrap();
    for waiter in waiting {
        soon(waiter).await.unwrap().unwrap();
    }
    println!("{count} hand-overs in {:?}", Clock::Boot.now().since(began));
    until_quiet(etcd).await;
    etcd.counters().await.unwrap().since(&before)
}

mod alone {
    use super::*;

    /// On a busy machine a turn lasts so long that waiters list the queue meanwhile.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_release_sends_a_crowd_few_events_and_an_acquire_sends_few_messages() {
        const ROUNDS: usize = 3;
        let etcd = etcd().await;
        let clients = crowd(&etcd, size(64, 300)).await;
        let acquired = clients.len() as u64 - 1;
        // Shows how fast eight clients are.
        hand_overs(&etcd, &clients[..9]).await;
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let spent = hand_overs(&etcd, &clients).await;
            let messages = spent.iter().filter(|(what, _)| what.starts_with("msg."));
            let messages: u64 = messages.map(|(_, count)| count).sum();
            let events = events(&spent, &Counters::default());
            println!("{acquired} acquires, {messages} messages, {events} events: {spent}");
            if messages <= acquired * 8 && events <= acquired * 16 {
                return;
            }
            all.push((messages, events));
        }
        panic!("{acquired} acquires: {all:?} messages and events");
    }
}

/// The clients whose bells have left the queue are served in order, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_goes_on_when_some_of_it_leave() {
    let etcd = etcd().await;
    let clients = crowd(&etcd, 40).await;
    let resource = Arc::new(Resource::default());
    let guard = clients[0].lock("job").unwrap().acquire().await.unwrap();
    let before = etcd.counters().await.unwrap().get("keys");
    let waiting: Vec<_> = clients[1..].iter().map(|locks| resource.take(locks)).collect();
    until_keys(&etcd, before + 39).await;
    let (leaving, staying): (Vec<_>, Vec<_>) =
        waiting.into_iter().enumerate().partition(|(n, _)| n % 3 == 0);
    leaving.iter().for_each(|(_, waiter)| waiter.abort());
    until_keys(&etcd, before + staying.len() as u64).await;
    guard.release().await.unwrap();
    for (_, waiter) in staying {
        soon(waiter).await.unwrap().unwrap();
    }
    until_clean(&etcd).await;
}

/// A list finds it 2 s after it has entered, or 5 s after that, and the next one in a TTL of 300 s.
/// The last client has two attempts, and no list goes up to the second.
#[tokio::test]
async fn a_waiter_behind_a_crowd_learns_that_its_entry_is_gone() {
    const SOON: Duration = Duration::from_secs(20);
    let etcd = etcd().await;
    let clients = crowd(&etcd, 12).await;
    let _guard = clients[0].lock("job").unwrap().acquire().await.unwrap();
    let mut waiting = Vec::new();
    for (n, locks) in clients[1..].iter().chain(clients.last()).enumerate() {
        waiting.push(tokio::spawn(locks.lock("job").unwrap().acquire()));
        until_queued(&clients[0], "job", n + 2).await;
    }
    for _ in 0..3 {
        let last = clients[0].inspect("job").await.unwrap().pop().unwrap();
        assert!(clients[0].revoke("job", last.attempt.unwrap()).await.unwrap());
        let told = Clock::Boot.timeout(SOON, waiting.pop().unwrap()).await;
        let told = told.expect("it does not wait for the next list").unwrap();
        assert!(matches!(told, Err(Error::PlaceLost { .. })), "{told:?}");
        until_queued(&clients[0], "job", waiting.len() + 1).await;
    }
}
