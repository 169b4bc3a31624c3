//! All kinds of locks on one name, from several clients, also over connections that break.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Kind, LockGuard, Locks};
use lock_lab::ZooKeeper;
use tokio::task::JoinSet;

use crate::support::*;

/// The share of a name that its holders take: a writer all, a reader a little, a permit a third.
#[derive(Default)]
struct Room(AtomicI64);

const ALL: i64 = 3 << 32;
const PERMIT: i64 = 1 << 32;

impl Room {
    fn enter(&self, kind: Kind) {
        let now = self.0.fetch_add(share(kind), Ordering::SeqCst) + share(kind);
        let readers = now % PERMIT;
        assert!(now <= ALL && (readers == 0 || now == readers), "{kind} made {now:#x}");
    }

    fn leave(&self, kind: Kind) {
        self.0.fetch_sub(share(kind), Ordering::SeqCst);
    }
}

fn share(kind: Kind) -> i64 {
    match kind {
        Kind::Shared => 1,
        Kind::Permit { weight, .. } => i64::from(weight) * PERMIT,
        _ => ALL,
    }
}

async fn acquire(locks: &Locks, name: &str, n: u64) -> LockGuard {
    let begin = Clock::Boot.now();
    let acquired = match n % 8 {
        0 | 1 => locks.lock(name).unwrap().acquire().await,
        2..=4 => locks.shared(name).unwrap().acquire().await,
        n @ 5.. => locks.semaphore(name, 3).unwrap().acquire_many(n as u32 - 4).await,
    };
    let took = Clock::Boot.now().since(begin);
    // A waiter must be woken before it looks by itself, once per TTL.
    assert!(took < locks.guarantees().default_ttl, "a wait of {took:?}");
    acquired.unwrap()
}

/// Holds the lock for a moment, and now and then turns it into another kind.
async fn hold(guard: &mut LockGuard, room: &Room, n: u64) {
    room.enter(guard.kind());
    if n.is_multiple_of(3) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    match guard.kind() {
        Kind::Exclusive if n.is_multiple_of(2) => {
            // From here on it is a reader for all waiters.
            room.leave(Kind::Exclusive);
            room.enter(Kind::Shared);
            guard.downgrade().await.unwrap();
        }
        Kind::Shared if n.is_multiple_of(5) => {
            let before = guard.token();
            if guard.try_upgrade().await.unwrap() {
                assert!(guard.token() > before);
                room.leave(Kind::Shared);
                room.enter(Kind::Exclusive);
            }
        }
        _ => {}
    }
    assert!(guard.is_valid());
    room.leave(guard.kind());
}

async fn work(locks: Locks, room: Arc<Room>, mut n: u64, work: Arc<Work>) {
    while work.goes_on() {
        // Numbers in no order.
        n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let chance = n >> 33;
        let turn = async {
            let mut guard = acquire(&locks, "mixed", chance).await;
            hold(&mut guard, &room, chance / 8).await;
            guard.release().await.unwrap();
        };
        soon("a caller's turn", turn).await;
        work.granted();
    }
}

async fn nothing_remains(server: &ZooKeeper, clients: &[Locks]) {
    eventually("nothing remains on the server", || async {
        let counters = server.counters().await.unwrap();
        // A client watches the token floor.
        counters.get("ephemerals") == 0 && counters.get("watches") == clients.len() as u64
    })
    .await;
    eventually("nothing remains in the clients", || async {
        clients.iter().all(|locks| format!("{:?}", locks.driver()).contains("attempts: 0"))
    })
    .await;
    assert_eq!(server.counters().await.unwrap().get("sessions_expired"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kind_hinders_another_and_no_waiter_is_forgotten() {
    let server = calm_server().await;
    let (room, mut clients, mut workers) = (Arc::default(), Vec::new(), JoinSet::new());
    let until = Work::until(lock_lab::size(1000, 10_000), 0);
    for client in 0..3 {
        let locks = open_calm(&server).await;
        for worker in 0..4 {
            let seed = client * 4 + worker;
            workers.spawn(work(locks.clone(), Arc::clone(&room), seed, until.clone()));
        }
        clients.push(locks);
    }
    all_end(workers).await;
    nothing_remains(&server, &clients).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_admit_no_holder_too_many() {
    let server = calm_server().await;
    let (room, mut clients, mut workers) = (Arc::default(), Vec::new(), JoinSet::new());
    let proxies = [proxy(&server).await, proxy(&server).await];
    let until = Work::until(lock_lab::size(60, 500), lock_lab::size(40, 400));
    for (client, proxy) in proxies.iter().enumerate() {
        let locks = open_calm_via(&server, proxy).await;
        for worker in 0..5 {
            let seed = client as u64 * 5 + worker;
            workers.spawn(work(locks.clone(), Arc::clone(&room), seed, until.clone()));
        }
        clients.push(locks);
    }
    until.with_resets(&proxies, workers).await;
    nothing_remains(&server, &clients).await;
}
