//! The cost of locking, counted by the servers: requests for a free lock, and requests caused by a
//! release while others wait. Unlike times, counts are exact. A client's background requests
//! (renewals) only add to the count, so the minimum of a few rounds is the cost.
#![cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]

use distlock::{LockGuard, Locks};
use lock_lab::{Counters, Server};
use tokio::task::JoinSet;

use crate::support::{Running, connect, eventually, start_patient};

const ROUNDS: usize = 5;
/// More rounds with many clients, because each client keeps a session alive.
const MANY_ROUNDS: usize = 50;
const PAIRS: u64 = 40;

/// A server that allows a very long TTL, so that few renewals fall into a round.
async fn patient(store: &str) -> (Running, String) {
    let server = start_patient(store).await;
    let url = format!("{}?ttl=40s", server.url());
    (server, url)
}

/// Requests of clients, without renewals and without the requests for the counters.
fn requests(store: &str, since: &Counters) -> u64 {
    match store {
        "etcd" => ["msg.Txn", "msg.Range", "msg.Put", "msg.DeleteRange"]
            .map(|what| since.get(what))
            .iter()
            .sum(),
        "redis" => since.get("cmd.evalsha") + since.get("cmd.eval"),
        // One packet requests the counters.
        _ => since.get("packets_received").saturating_sub(1),
    }
}

/// Events that the server sent to clients.
fn events(store: &str, since: &Counters) -> u64 {
    match store {
        // The server replies to each message of a client on its watch stream. A reply is not an
        // event.
        "etcd" => since.get("sent.Watch").saturating_sub(since.get("msg.Watch")),
        "redis" => since.get("cmd.publish"),
        // The event for the next waiter, and the event for the watch of the holder on its own node.
        _ => since
            .iter()
            .filter(|(what, _)| what.starts_with("fired."))
            .map(|(_, count)| count)
            .sum(),
    }
}

/// Two requests on etcd and Redis. Three on ZooKeeper, where a client must also check whether it is
/// the first.
async fn a_free_lock(store: &str) {
    let (server, url) = patient(store).await;
    let locks = connect(&url).await;
    let exclusive = locks.lock("counted").unwrap();
    let shared = locks.shared("counted").unwrap();
    let semaphore = locks.semaphore("counted permits", 3).unwrap();
    cost(store, &server, "exclusive", || exclusive.acquire()).await;
    cost(store, &server, "shared", || shared.acquire()).await;
    cost(store, &server, "2 of 3 permits", || semaphore.acquire_many(2)).await;
    // The same next to other holders of the same kind.
    let (_reader, _permit) = (shared.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
    cost(store, &server, "shared beside a reader", || shared.acquire()).await;
    cost(store, &server, "2 of 3 permits beside 1", || semaphore.acquire_many(2)).await;
}

async fn cost<F: Future<Output = distlock::Result<LockGuard>>>(
    store: &str,
    server: &Server,
    kind: &str,
    acquire: impl Fn() -> F,
) {
    let pair = async || acquire().await.unwrap().release().await.unwrap();
    let least = least_requests(store, server, pair).await;
    let each = if store == "zookeeper" { 3 } else { 2 };
    println!(
        "{store}: {} requests for an acquire and release, {kind}",
        least as f64 / PAIRS as f64
    );
    assert_eq!(least, each * PAIRS, "requests for {PAIRS} acquires and releases, {kind}");
}

/// Requests for `PAIRS` pairs of an acquire and a release: the minimum of `ROUNDS` rounds.
async fn least_requests(store: &str, server: &Server, pair: impl AsyncFn()) -> u64 {
    pair().await;
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let before = server.counters().await.unwrap();
        for _ in 0..PAIRS {
            pair().await;
        }
        let since = server.counters().await.unwrap().since(&before);
        least = least.min(requests(store, &since));
    }
    least
}

/// The first waiter is granted, and no other waiter wakes up. A release causes at most one event
/// per waiting client and no request. On ZooKeeper it causes one look at the directory if the
/// waiter did not know yet that the one before it was the first.
async fn a_release_before_waiters(store: &str) {
    let (server, url) = patient(store).await;
    for waiters in [2, 10, 100] {
        let mut clients = Vec::new();
        for _ in 0..waiters.min(10) {
            clients.push(connect(&url).await);
        }
        release(store, &server, &clients, waiters).await;
    }
}

async fn release(store: &str, server: &Server, clients: &[Locks], waiters: usize) {
    let name = format!("counted-{waiters}");
    let mut holder = clients[0].lock(&name).unwrap().acquire().await.unwrap();
    let mut queue: JoinSet<LockGuard> = JoinSet::new();
    let wait = |n: usize| clients[n % clients.len()].lock(&name).unwrap().acquire();
    let length = |n| {
        let (locks, name) = (&clients[0], &name);
        async move { locks.inspect(name).await.unwrap().len() == n }
    };
    let allowed = u64::from(store == "zookeeper");
    let (mut caused, mut delivered) = (u64::MAX, u64::MAX);
    for round in 0..MANY_ROUNDS {
        if caused <= allowed && delivered <= clients.len() as u64 {
            break;
        }
        while queue.len() < waiters {
            let waiter = wait(round + queue.len() + 1);
            queue.spawn(async { waiter.await.unwrap() });
        }
        eventually("all wait", || length(waiters + 1)).await;
        let before = server.counters().await.unwrap();
        holder.release().await.unwrap();
        holder = queue.join_next().await.unwrap().unwrap();
        let since = server.counters().await.unwrap().since(&before);
        assert!(queue.try_join_next().is_none(), "a second waiter was granted");
        caused = caused.min(requests(store, &since) - 1);
        delivered = delivered.min(events(store, &since));
    }
    println!(
        "{store}: release with {waiters} waiters of {} clients: {caused} requests, {delivered} events",
        clients.len()
    );
    assert!(caused <= allowed, "{caused} requests by a release with {waiters} waiters");
    assert!(delivered <= clients.len() as u64, "{delivered} events for {} clients", clients.len());
}

/// A writer's release lets ten readers of ten clients in. A released permit lets in one of ten
/// waiters. On etcd and Redis neither causes a request. On ZooKeeper each reader may look once.
/// After a permit, the waiter that enters and the next one in line look and record it, with four
/// requests.
async fn a_release_before_readers_and_permits(store: &str) {
    let (server, url) = patient(store).await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(connect(&url).await);
    }
    let first = &clients[0];
    let looks = |most| if store == "zookeeper" { most } else { 0 };
    let (mut readers, mut permits) = (u64::MAX, u64::MAX);
    for _ in 0..MANY_ROUNDS {
        if readers > looks(10) {
            let writer = first.lock("readers").unwrap().acquire().await.unwrap();
            let waiting = clients.iter().map(|locks| locks.shared("readers").unwrap().acquire());
            readers = readers.min(enter(store, &server, first, [writer], waiting, 10).await);
        }
        if permits > looks(4) {
            let semaphores = || clients.iter().map(|locks| locks.semaphore("permits", 3).unwrap());
            let two = semaphores().next().unwrap().acquire_many(2).await.unwrap();
            let one = semaphores().next().unwrap().acquire().await.unwrap();
            let waiting = semaphores().map(|semaphore| semaphore.acquire());
            permits = permits.min(enter(store, &server, first, [one, two], waiting, 1).await);
        }
    }
    println!("{store}: a release before 10 readers of 10 clients: {readers} requests");
    println!("{store}: a permit comes back before 10 of 10 clients: {permits} requests");
    assert!(readers <= looks(10), "{readers} requests by a release before 10 readers");
    assert!(permits <= looks(4), "{permits} requests by a permit that comes back");
}

/// Releases the first of the holders. Exactly this number of waiters enters. Returns the number of
/// requests that the release caused.
async fn enter<F: Future<Output = distlock::Result<LockGuard>> + Send + 'static>(
    store: &str,
    server: &Server,
    locks: &Locks,
    holders: impl IntoIterator<Item = LockGuard>,
    waiters: impl Iterator<Item = F>,
    entering: usize,
) -> u64 {
    let mut holders: Vec<_> = holders.into_iter().collect();
    let (mut queue, name) = (JoinSet::new(), holders[0].name().clone());
    for waiter in waiters {
        queue.spawn(async { waiter.await.unwrap() });
        let all = holders.len() + queue.len();
        eventually("it waits", || async { locks.inspect(&name).await.unwrap().len() == all }).await;
    }
    let before = server.counters().await.unwrap();
    holders.remove(0).release().await.unwrap();
    let mut entered = Vec::new();
    while entered.len() < entering {
        entered.push(queue.join_next().await.unwrap().unwrap());
    }
    let since = server.counters().await.unwrap().since(&before);
    assert!(queue.try_join_next().is_none(), "more than {entering} entered");
    drop((entered, holders));
    while let Some(guard) = queue.join_next().await {
        guard.unwrap().release().await.unwrap();
    }
    eventually("all have gone", || async { locks.inspect(&name).await.unwrap().is_empty() }).await;
    requests(store, &since) - 1
}

/// One request takes all names of a set. Each name is released by its own request. A ZooKeeper
/// client also lists the names before that and in the same request, and asks for the node's
/// revision.
async fn a_free_set(store: &str) {
    let expected = match store {
        "zookeeper" => 3 + (1 + 3) + 1 + 3,
        _ => 1 + 3,
    };
    let (server, url) = patient(store).await;
    let set = connect(&url).await.all(["x", "y", "z"]).unwrap();
    let pair = async || set.acquire().await.unwrap().release().await.unwrap();
    let least = least_requests(store, &server, pair).await;
    println!("{store}: {} requests for a set of three", least as f64 / PAIRS as f64);
    // ZooKeeper 3.9 returns the revision without an extra request.
    let newer = if store == "zookeeper" { expected - 1 } else { expected };
    let cost = [expected * PAIRS, newer * PAIRS];
    assert!(cost.contains(&least), "{least} requests for {PAIRS} acquires and releases of a set");
}

on_every_server!(
    a_free_lock,
    a_free_set,
    a_release_before_waiters,
    a_release_before_readers_and_permits
);
