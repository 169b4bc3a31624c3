//! Shared locks and permits: grants, counts, keys, conversions.

use std::time::Duration;

use lock_core::{Attempt, DistributedLock, Kind};

use crate::lab::*;

const TTL: Duration = Duration::from_secs(10);
/// So long that no renewal falls into a count.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn every_kind_is_two_commands() {
    let (server, driver) = one_driver().await;
    warm(&driver).await;
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 1), permits(2, 3)] {
        let before = server.counters().await.unwrap();
        for _ in 0..50 {
            acquire_as(kind, &driver, "orders", LONG).await.unwrap().release().await.unwrap();
        }
        let calls = server.counters().await.unwrap().since(&before);
        assert_eq!((calls.get("cmd.evalsha"), calls.get("cmd.publish")), (100, 0), "{calls}");
        nothing_is_left(&server).await;
    }
}

/// One release lets them all in, with one push each and no further request.
#[tokio::test]
async fn ten_waiters_enter_by_one_release() {
    let (server, one, two) = two_drivers().await;
    for kind in [Kind::Shared, permits(1, 10)] {
        let first = acquire(&one, "orders", LONG).await.unwrap();
        let mut waiters = Vec::new();
        for i in 0..10 {
            let driver = if i % 2 == 0 { &one } else { &two };
            waiters.push(Waiter::queued_as(kind, driver, &server, "orders", LONG).await);
        }
        let last = Waiter::queued(&one, &server, "orders", LONG).await;
        let before = server.counters().await.unwrap();
        let mut token = first.token();
        first.release().await.unwrap();
        let mut leases = Vec::new();
        for waiter in waiters {
            let lease = waiter.granted().await;
            assert!(lease.token() > token, "tokens must rise in the order of the queue");
            token = lease.token();
            leases.push(lease);
        }
        let calls = server.counters().await.unwrap().since(&before);
        println!(
            "{kind}: {} requests, {} pushes",
            calls.get("cmd.evalsha"),
            calls.get("cmd.publish")
        );
        assert_eq!((calls.get("cmd.evalsha"), calls.get("cmd.publish")), (1, 10), "{calls}");
        for lease in leases {
            assert!(!last.task.is_finished());
            lease.release().await.unwrap();
        }
        last.granted().await.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn foreign_clients_take_every_kind_for_an_exclusive_lock() {
    let (server, driver) = one_driver().await;
    let set: &[&[u8]] = &[b"SET", b"orders", b"token", b"NX", b"PX", b"60000"];
    for kind in [Kind::Shared, permits(1, 3)] {
        let lease = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        assert_eq!(server.command(&[b"TYPE", b"orders"]).await.unwrap(), "string");
        assert_eq!(server.command(set).await.unwrap(), "(nil)");
        lease.release().await.unwrap();
        assert_eq!(server.command(set).await.unwrap(), "OK");
        let waiter = Waiter::queued_as(kind, &driver, &server, "orders", TTL).await;
        server.command(&[b"DEL", b"orders"]).await.unwrap();
        waiter.granted().await.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

/// The key lives as long as the longest-lived holder, neither shorter nor longer.
#[tokio::test]
async fn the_key_lives_as_long_as_its_longest_holder() {
    let (server, driver) = one_driver().await;
    let pttl = async || {
        let text = server.command(&[b"PTTL", b"orders"]).await.unwrap();
        text.parse::<u64>().unwrap()
    };
    let short = acquire_as(Kind::Shared, &driver, "orders", TTL).await.unwrap();
    let long = acquire_as(Kind::Shared, &driver, "orders", TTL * 6).await.unwrap();
    assert!((50_001..=60_000).contains(&pttl().await));
    short.renew().await.unwrap();
    assert!((50_001..=60_000).contains(&pttl().await));
    long.release().await.unwrap();
    assert!((5_000..=10_000).contains(&pttl().await));
    short.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn the_queue_shows_the_kind_and_the_time_left_of_each_entry() {
    let (server, driver) = one_driver().await;
    let mut described = request_of(permits(2, 3), "orders", TTL);
    described.holder = "the night shift".into();
    let one = driver.acquire(described, Attempt::new()).await.unwrap();
    let two = acquire_as(permits(1, 3), &driver, "orders", TTL * 3).await.unwrap();
    let reader = Waiter::queued_as(Kind::Shared, &driver, &server, "orders", TTL).await;
    let queue = driver.inspect(&name("orders")).await.unwrap();
    let shown: Vec<_> = queue.iter().map(|entry| (entry.kind, entry.holds)).collect();
    assert_eq!(
        shown,
        [(permits(2, 3), true), (permits(1, 3), true), (Kind::Shared, false)],
        "{queue:?}"
    );
    let tokens: Vec<_> = queue.iter().map(|entry| entry.holder.token).collect();
    assert_eq!(tokens, [Some(one.token()), Some(two.token()), None]);
    let left: Vec<_> = queue.iter().map(|entry| entry.ttl_left.unwrap().as_secs()).collect();
    assert!(left[0] < 10 && (20..30).contains(&left[1]) && left[2] < 10, "{left:?}");
    assert_eq!(queue[0].holder.description.as_deref(), Some("the night shift"));
    assert_eq!(queue[1].holder.description.as_deref(), Some(&*lock_core::this_process()));
    reader.attempt.cancel();
    assert!(reader.ended().await.is_err());
    one.release().await.unwrap();
    two.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The description, the term's end and, downwards, the token stay.
#[tokio::test]
async fn a_conversion_changes_nothing_but_the_kind() {
    let (server, driver) = one_driver().await;
    let mut described = request_of(Kind::Exclusive, "orders", TTL);
    described.holder = "the night shift".into();
    described.term = lock_core::Term::Fixed;
    let lease = driver.acquire(described, Attempt::new()).await.unwrap();
    let first = lease.token();
    server.command(&[b"PEXPIRE", b"orders", b"3000"]).await.unwrap();
    for kind in [Kind::Shared, Kind::Exclusive, Kind::Shared] {
        match kind {
            Kind::Shared => {
                let token = lease.token();
                lease.downgrade().await.unwrap();
                assert_eq!(lease.token(), token);
            }
            _ => {
                assert!(lease.try_upgrade().await.unwrap());
                assert!(lease.token() > first);
            }
        }
        let queue = driver.inspect(&name("orders")).await.unwrap();
        assert_eq!((queue.len(), queue[0].kind, queue[0].holds), (1, kind, true));
        assert_eq!(queue[0].holder.token, Some(lease.token()));
        assert_eq!(queue[0].holder.description.as_deref(), Some("the night shift"));
        assert!(queue[0].ttl_left.unwrap() <= Duration::from_secs(3));
    }
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// Rounds come while the lock is held alone, beside others, and alone again.
#[tokio::test]
async fn a_converted_lock_is_renewed() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(9);
    let lease = acquire(&driver, "orders", ttl).await.unwrap();
    for step in 0..3 {
        match step {
            1 => lease.downgrade().await.unwrap(),
            2 => assert!(lease.try_upgrade().await.unwrap()),
            _ => {}
        }
        let before = lease.validity().until();
        until(async || lease.validity().until() > before + ttl).await;
        lease.renew().await.unwrap();
        assert!(!lease.validity().has_ended());
    }
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn permits_are_not_upgraded() {
    let (server, driver) = one_driver().await;
    let permit = acquire_as(permits(1, 1), &driver, "orders", TTL).await.unwrap();
    assert!(!permit.try_upgrade().await.unwrap());
    permit.release().await.unwrap();
    nothing_is_left(&server).await;
}
