//! Several locks by one request.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Clock, DistributedLock, Error, Kind, Lease, LossReason, Request, Result, Term, Wait,
    Wish,
};
use lock_lab::Redis;
use lock_redis::RedisLock;

use crate::lab::{self, *};

const TTL: Duration = Duration::from_secs(10);
/// So long that no round comes and nothing expires while a test waits.
const LONG: Duration = Duration::from_secs(600);
const NAMES: [&str; 3] = ["a", "b", "c"];

type Set = Result<Option<Vec<Box<dyn Lease>>>>;

fn wishes(names: &[&str], ttl: Duration, attempt: &Attempt) -> Vec<Wish> {
    let wish = |lock: &&str| {
        let mut request = request(lock, ttl);
        request.wait = Wait::Try;
        (request, attempt.another())
    };
    names.iter().map(wish).collect()
}

async fn try_all(driver: &RedisLock, names: &[&str], ttl: Duration) -> Set {
    within(driver.try_all(wishes(names, ttl, &Attempt::new()))).await
}

async fn all(driver: &RedisLock, names: &[&str], ttl: Duration) -> Vec<Box<dyn Lease>> {
    try_all(driver, names, ttl).await.unwrap().expect("one of the locks is busy")
}

/// Asks for a set in a task of its own.
fn start(driver: &Arc<RedisLock>, ttl: Duration) -> (Attempt, tokio::task::JoinHandle<Set>) {
    let attempt = Attempt::new();
    let (driver, wishes) = (driver.clone(), wishes(&NAMES, ttl, &attempt));
    (attempt, tokio::spawn(async move { driver.try_all(wishes).await }))
}

async fn release(leases: Vec<Box<dyn Lease>>) {
    for lease in leases {
        lease.release().await.unwrap();
    }
}

async fn exists(server: &Redis, lock: &str) -> bool {
    server.command(&[b"EXISTS", lock.as_bytes()]).await.unwrap() == "1"
}

async fn modes(server: &Redis) -> [Arc<RedisLock>; 2] {
    [driver(&server.url()).await, driver(&format!("{}?mode=simple", server.url())).await]
}

#[tokio::test]
async fn three_locks_are_taken_by_one_command_and_released_by_three() {
    let server = server().await;
    warm(&*lab::driver(&server.url()).await).await;
    for driver in modes(&server).await {
        // So long that no renewal falls into the count.
        let set = lock_core::Locks::of(driver).all(NAMES).unwrap().ttl(TTL * 60);
        let before = server.counters().await.unwrap();
        for _ in 0..50 {
            set.acquire().await.unwrap().release().await.unwrap();
            set.try_acquire().await.unwrap().unwrap().release().await.unwrap();
        }
        let calls = server.counters().await.unwrap().since(&before);
        assert_eq!((calls.get("cmd.evalsha"), calls.get("cmd.publish")), (400, 0), "{calls}");
        nothing_is_left(&server).await;
    }
}

/// The most names that one request takes; with one more they are taken in order.
#[tokio::test]
async fn as_many_as_promised_are_taken_by_one_command() {
    let (server, driver) = one_driver().await;
    let most = driver.guarantees().names_at_once;
    warm(&driver).await;
    let locks = lock_core::Locks::of(driver);
    for (count, requests) in [(most, 1), (most + 1, most + 1)] {
        let set = locks.all((0..count).map(|i| format!("n{i}"))).unwrap().ttl(TTL * 60);
        let before = server.counters().await.unwrap();
        let held = set.acquire().await.unwrap();
        let calls = server.counters().await.unwrap().since(&before);
        assert_eq!(calls.get("cmd.evalsha"), requests as u64, "{calls}");
        held.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

/// For any holder of any of the names: another lock, another kind, another mode, a foreign client.
#[tokio::test]
async fn one_busy_name_is_enough_and_nothing_is_changed() {
    let server = server().await;
    let [queue, simple] = modes(&server).await;
    for taken in NAMES {
        for kind in [Kind::Exclusive, Kind::Shared, permits(1, 3)] {
            let lease = acquire_as(kind, &queue, taken, TTL).await.unwrap();
            refused_and_unchanged(&server, [&queue, &simple], taken).await;
            lease.release().await.unwrap();
        }
        let lease = acquire(&simple, taken, TTL).await.unwrap();
        refused_and_unchanged(&server, [&queue, &simple], taken).await;
        lease.release().await.unwrap();
        server.command(&[b"HSET", taken.as_bytes(), b"redisson", b"1"]).await.unwrap();
        refused_and_unchanged(&server, [&queue, &simple], taken).await;
        server.command(&[b"DEL", taken.as_bytes()]).await.unwrap();
    }
    release(all(&queue, &NAMES, TTL).await).await;
    nothing_is_left(&server).await;
}

async fn refused_and_unchanged(server: &Redis, drivers: [&RedisLock; 2], taken: &str) {
    let sorted = async || {
        let mut keys = server.keys().await.unwrap();
        keys.sort();
        keys
    };
    let before = sorted().await;
    for driver in drivers {
        assert!(try_all(driver, &NAMES, TTL).await.unwrap().is_none(), "{taken}");
        assert_eq!(sorted().await, before, "{taken}");
    }
}

/// The lock's key has vanished: it is the waiter's turn.
#[tokio::test]
async fn a_waiter_is_not_overtaken_and_gets_the_lock() {
    let server = server().await;
    for driver in modes(&server).await {
        let waits = lab::driver(&server.url()).await;
        for taken in NAMES {
            let holder = acquire(&waits, taken, TTL).await.unwrap();
            let waiter = Waiter::queued(&waits, &server, taken, TTL * 6).await;
            let behind = Waiter::queued(&waits, &server, taken, TTL * 6).await;
            server.command(&[b"DEL", taken.as_bytes()]).await.unwrap();
            assert!(try_all(&driver, &NAMES, TTL).await.unwrap().is_none());
            waiter.granted().await.release().await.unwrap();
            behind.granted().await.release().await.unwrap();
            holder.release().await.unwrap();
            nothing_is_left(&server).await;
        }
    }
}

#[tokio::test]
async fn dead_waiters_block_no_set() {
    let (server, driver) = one_driver().await;
    for lock in NAMES {
        server.command(&[b"RPUSH", &companion(lock, "queue"), b"nobody"]).await.unwrap();
    }
    release(all(&driver, &NAMES, TTL).await).await;
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn tokens_rise_and_the_queue_shows_them() {
    let (server, driver) = one_driver().await;
    let mut request: Request = request("b", TTL);
    request.holder = "the night shift".into();
    let wishes = [wishes(&["a"], TTL, &Attempt::new()), vec![(request, Attempt::new())]].concat();
    for _ in 0..5 {
        let before = acquire(&driver, "a", TTL).await.unwrap();
        before.release().await.unwrap();
        let leases = within(driver.try_all(wishes.clone())).await.unwrap().unwrap();
        assert!(leases[0].token() > before.token());
        let who = [lock_core::this_process(), "the night shift".into()];
        for (((lease, (request, attempt)), who), lock) in
            leases.iter().zip(&wishes).zip(who).zip(["a", "b"])
        {
            let queue = driver.inspect(&request.name).await.unwrap();
            assert_eq!((queue.len(), queue[0].holder.token), (1, Some(lease.token())), "{lock}");
            assert_eq!(queue[0].attempt, Some(attempt.id()));
            assert_eq!(queue[0].holder.description.as_deref(), Some(&*who));
        }
        release(leases).await;
        nothing_is_left(&server).await;
    }
}

/// The server has granted all, the answer is lost, and then one name goes to another attempt.
#[tokio::test]
async fn a_set_that_is_incomplete_when_it_is_asked_for_again_is_given_back() {
    let (server, proxy, far, near) = far_and_near().await;
    warm(&near).await;
    for lost in NAMES {
        proxy.half_open();
        let (_, asking) = start(&far, LONG);
        until(async || exists(&server, lost).await).await;
        let kept = NAMES.iter().find(|lock| **lock != lost).unwrap();
        let waiter = Waiter::queued(&near, &server, kept, LONG).await;
        server.command(&[b"DEL", lost.as_bytes()]).await.unwrap();
        let other = acquire(&near, lost, TTL).await.unwrap();
        proxy.reset();
        proxy.heal();
        assert!(within(asking).await.unwrap().unwrap().is_none(), "{lost}");
        waiter.granted().await.release().await.unwrap();
        other.renew().await.unwrap();
        other.release().await.unwrap();
        assert!(left_behind(&server).await.is_empty(), "{lost}");
    }
}

#[tokio::test]
async fn a_cancelled_set_without_an_answer_leaves_nothing() {
    let (server, proxy, far) = behind_a_proxy().await;
    warm(&far).await;
    for answered in [true, false] {
        proxy.half_open();
        let (attempt, asking) = start(&far, Duration::from_secs(3));
        until(async || exists(&server, "c").await).await;
        attempt.cancel();
        if !answered {
            // No answer, no connection, and no caller that waits for one.
            proxy.refuse();
            assert!(is_unavailable(&within(asking).await.unwrap()));
            proxy.heal();
        } else {
            proxy.heal();
            // The answer arrived after all: lock-core would release the leases.
            if let Some(leases) = within(asking).await.unwrap().unwrap() {
                release(leases).await;
            }
            assert!(left_behind(&server).await.is_empty());
        }
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_server_that_stays_away_is_an_error_and_nothing_is_left() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_millis(600);
    for _ in 0..3 {
        server.stop();
        assert!(is_unavailable(&try_all(&driver, &NAMES, ttl).await));
        server.resume();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_full_memory_is_an_error_and_leaves_nothing() {
    let (server, driver) = one_driver().await;
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).await.unwrap();
    let full = try_all(&driver, &NAMES, Duration::from_millis(600)).await;
    assert!(matches!(full, Err(Error::Unavailable { .. })), "{full:?}");
    assert!(left_behind(&server).await.is_empty());
}

/// A companion of another type stops the script half-way.
#[tokio::test]
async fn a_script_that_fails_half_way_leaves_nothing() {
    let (server, driver) = one_driver().await;
    let fence = companion("c", "fence");
    server.command(&[b"RPUSH", &fence, b"x"]).await.unwrap();
    let refused = try_all(&driver, &NAMES, TTL).await;
    assert!(matches!(refused, Err(Error::Rejected { .. })), "{refused:?}");
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn leases_of_a_set_are_renewed_lost_and_revoked_one_by_one() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(9);
    let leases = all(&driver, &NAMES, ttl).await;
    let first = leases[0].validity().until();
    until(async || leases.iter().all(|lease| lease.validity().until() > first + ttl)).await;
    server.command(&[b"DEL", b"a"]).await.unwrap();
    assert_eq!(within(leases[0].validity().lost()).await, LossReason::EntryGone);
    let attempt = driver.inspect(&name("b")).await.unwrap()[0].attempt.unwrap();
    assert!(driver.revoke(&name("b"), attempt).await.unwrap());
    assert_eq!(within(leases[1].validity().lost()).await, LossReason::EntryGone);
    leases[2].renew().await.unwrap();
    leases[2].downgrade().await.unwrap();
    assert!(leases[2].try_upgrade().await.unwrap());
    release(leases).await;
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_fixed_term_ends_on_the_server() {
    let (_server, driver) = one_driver().await;
    let mut wishes = wishes(&NAMES, Duration::from_secs(2), &Attempt::new());
    wishes.iter_mut().for_each(|(request, _)| request.term = Term::Fixed);
    let leases = within(driver.try_all(wishes)).await.unwrap().unwrap();
    // They are not renewed, so the next attempts get them although they are not released.
    for (lease, lock) in leases.iter().zip(NAMES) {
        let next = acquire(&driver, lock, TTL).await.unwrap();
        assert!(next.token() > lease.token());
        assert!(Clock::Boot.now() >= lease.validity().until());
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn closing_frees_a_set_and_a_closed_client_takes_none() {
    let (server, closing) = one_driver().await;
    let leases = all(&closing, &NAMES, TTL).await;
    closing.close().await.unwrap();
    for lease in &leases {
        assert_eq!(within(lease.validity().lost()).await, LossReason::Closed);
    }
    assert!(matches!(try_all(&closing, &NAMES, TTL).await, Err(Error::Closed { .. })));
    nothing_is_left(&server).await;
}
