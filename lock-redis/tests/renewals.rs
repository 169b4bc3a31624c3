//! Renewals beside what fails: a broken name, a server without its data, a suspected primary.

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::{Attempt, Clock, DistributedLock, Kind, Lease, LossReason};
use lock_lab::{Proxy, Redis, RedisSentinels};

use crate::lab::*;

const TTL: Duration = Duration::from_secs(9);
/// So long that no renewal by its time comes while a test waits.
const LONG: Duration = Duration::from_secs(600);

/// Waits until the lease was renewed as often as this.
async fn is_renewed(lease: &dyn Lease, times: usize) {
    for _ in 0..times {
        let until_now = lease.validity().until();
        until(async || {
            assert!(Clock::Boot.now() < lease.validity().until(), "not renewed in time");
            lease.validity().until() > until_now
        })
        .await;
    }
    assert_eq!(lease.validity().loss(), None);
}

#[tokio::test]
async fn a_name_whose_keys_are_broken_ends_no_other_lock() {
    let (server, driver) = one_driver().await;
    let broken = acquire_as(Kind::Shared, &driver, "broken", TTL).await.unwrap();
    let alone = acquire(&driver, "alone", TTL).await.unwrap();
    let shared = acquire_as(Kind::Shared, &driver, "shared", TTL).await.unwrap();
    let permit = acquire_as(permits(1, 2), &driver, "permit", TTL).await.unwrap();
    let holders = companion("broken", "holders");
    server.command(&[b"SET", &holders, b"no set"]).await.unwrap();
    let end = broken.validity().until();
    join_all([&alone, &shared, &permit].map(|lease| is_renewed(&**lease, 4))).await;
    assert_eq!(broken.validity().until(), end);
    server.command(&[b"DEL", &holders]).await.unwrap();
    for lease in [broken, alone, shared, permit] {
        lease.release().await.unwrap();
    }
    nothing_is_left(&server).await;
}

/// A renewal counts from when it was sent: by the server's clock, the lock ends so much earlier.
#[tokio::test]
async fn a_late_answer_moves_the_deadline_no_further() {
    let (server, proxy, far) = behind_a_proxy().await;
    let way = Duration::from_millis(400);
    let mut leases = Vec::new();
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 2)] {
        leases.push(acquire_as(kind, &far, &format!("{kind:?}"), TTL).await.unwrap());
    }
    proxy.delay(way);
    // The first one may have been sent before.
    join_all(leases.iter().map(|lease| is_renewed(&**lease, 1))).await;
    join_all(leases.iter().map(async |lease| {
        is_renewed(&**lease, 1).await;
        let latest = Clock::Boot.now() + TTL;
        let end = lease.validity().until();
        assert!(end + way * 2 <= latest, "{:?} too late", (end + way * 2).since(latest));
    }))
    .await;
    for lease in leases {
        lease.release().await.unwrap();
    }
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_holder_hears_at_once_of_a_restart_that_lost_its_lock() {
    let server = Redis::builder().appendonly(false).start().await.unwrap();
    let driver = driver(&server.url()).await;
    let exclusive = acquire(&driver, "exclusive", LONG).await.unwrap();
    let shared = acquire_as(Kind::Shared, &driver, "shared", LONG).await.unwrap();
    let fixed = acquire_fixed(&driver, "fixed", LONG).await.unwrap();
    server.kill();
    server.restart().await.unwrap();
    for lease in [exclusive, shared, fixed] {
        until(async || lease.validity().loss() == Some(LossReason::EntryGone)).await;
    }
}

#[tokio::test]
async fn a_holder_hears_at_once_of_a_revoke_while_it_was_cut_off() {
    let (server, proxy, far, near) = far_and_near().await;
    let held = acquire(&far, "orders", LONG).await.unwrap();
    proxy.refuse();
    let holder = near.inspect(&name("orders")).await.unwrap()[0].attempt.unwrap();
    near.revoke(&name("orders"), holder).await.unwrap();
    let next = acquire(&near, "orders", LONG).await.unwrap();
    proxy.heal();
    until(async || held.validity().loss().is_some()).await;
    next.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The sentinels take the primary for dead, and it answers this client all the same.
#[tokio::test]
async fn a_young_lock_outlives_the_suspicion_of_a_primary_that_answers() {
    let builder = RedisSentinels::builder().in_memory().down_after(Duration::from_millis(500));
    let redis = builder.start().await.unwrap();
    let primary = redis.node(0);
    // No failover, whatever the sentinels think.
    for replica in redis.replicas_of(0) {
        let never = ["CONFIG", "SET", "replica-priority", "0"].map(str::as_bytes);
        redis.node(replica).command(&never).await.unwrap();
    }
    let user = ["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"].map(str::as_bytes);
    primary.command(&user).await.unwrap();
    let addrs: Vec<_> = redis.sentinel_addrs().iter().map(ToString::to_string).collect();
    let url = format!("redis+sentinel://app:secret@{}/lab", addrs.join(","));
    let client = driver(&url).await;
    let suspected = async |expected: bool| {
        until(async || {
            let told = redis.sentinel(0).command(&[b"SENTINEL", b"MASTER", b"lab"]).await.unwrap();
            told.contains("o_down") == expected
        })
        .await;
    };
    let held = acquire(&client, "held", LONG).await.unwrap();
    let fixed = acquire_fixed(&client, "fixed", LONG).await.unwrap();
    let granted = [held.validity().until(), fixed.validity().until()];
    let lazy = ["ACL", "SETUSER", "default", "-ping"].map(str::as_bytes);
    primary.command(&lazy).await.unwrap();
    suspected(true).await;
    // The sign has come when the deadline has fallen, and it rises by a request alone.
    within(async {
        for (lease, until_then) in [&held, &fixed].into_iter().zip(granted) {
            until(async || lease.validity().until() == until_then).await;
        }
    })
    .await;
    let next = acquire(&client, "next", LONG).await.unwrap();
    assert_eq!((held.validity().loss(), fixed.validity().loss()), (None, None));
    let again = ["ACL", "SETUSER", "default", "+ping"].map(str::as_bytes);
    primary.command(&again).await.unwrap();
    suspected(false).await;
    for lease in [held, fixed, next] {
        within(lease.renew()).await.unwrap();
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_last_token_that_is_no_number_ends_no_other_lock() {
    let (server, driver) = one_driver().await;
    // Of one request; the broken one is somewhere among them (the book has no order).
    let names: Vec<_> = (0..20).map(|i| format!("n{i}")).collect();
    let held = join_all(names.iter().map(|it| acquire_as(Kind::Shared, &driver, it, TTL))).await;
    let held: Vec<_> = held.into_iter().map(Result::unwrap).collect();
    let mut candidate = request("broken", TTL);
    candidate.value = Some(b"x".to_vec().into());
    let leader = within(driver.acquire(candidate, Attempt::new())).await.unwrap();
    server.command(&[b"SET", &companion("broken", "fence"), b"no number"]).await.unwrap();
    join_all(held.iter().map(|lease| is_renewed(&**lease, 4))).await;
    drop(leader);
}

/// How long a key lives.
async fn pttl(server: &Redis, key: &str) -> Duration {
    let answer = server.command(&[b"PTTL", key.as_bytes()]).await.unwrap();
    // It is below zero without the key.
    Duration::from_millis(answer.parse().unwrap_or(0))
}

fn believed(lease: &dyn Lease) -> Duration {
    lease.validity().until().since(Clock::Boot.now())
}

/// The check was on its way when its connection broke, and comes after its holder's own renewal.
/// The key must not end before the holder's deadline.
#[tokio::test]
async fn a_check_that_comes_late_takes_no_time_from_a_fixed_term() {
    let ttl = TTL * 2;
    let server = server().await;
    // This user cannot stop what a broken connection has left behind.
    give_documented_rights(&server, " -client").await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let driver = driver(&documented_url(proxy.addr())).await;
    let mut leases = Vec::new();
    for (lock, kind) in
        [("alone", Kind::Exclusive), ("shared", Kind::Shared), ("permit", permits(1, 2))]
    {
        let lease = acquire_fixed_as(kind, &driver, lock, ttl).await.unwrap();
        leases.push((format!("app:{lock}"), lease));
    }
    // Far more than the margin between a deadline and the key's end.
    until(async || leases.iter().all(|(_, lease)| believed(&**lease) < ttl * 3 / 4)).await;

    let calls = async || server.counters().await.unwrap().get("cmd.evalsha");
    let before = calls().await;
    // After a reconnect all are checked, by one request.
    proxy.catch(b"EVALSHA");
    proxy.reset();
    until(async || proxy.caught() == 1).await;
    // On the next connection as well.
    until(async || calls().await > before).await;
    let renewed = join_all(leases.iter().map(|(_, lease)| within(lease.renew()))).await;
    renewed.into_iter().for_each(Result::unwrap);

    let before = calls().await;
    proxy.deliver();
    until(async || calls().await > before).await;
    for (key, lease) in leases {
        let (left, believed) = (pttl(&server, &key).await, believed(&*lease));
        assert!(left >= believed, "{key}: {left:?} of {believed:?}");
        lease.release().await.unwrap();
    }
}

/// A failover may lead to a server whose clock is ahead of the earlier one's, or behind it.
#[tokio::test]
async fn a_check_sets_an_expiry_right_that_another_clock_has_made_wrong() {
    let (server, proxy, far) = behind_a_proxy().await;
    let alone = acquire_fixed(&far, "alone", LONG).await.unwrap();
    let shared = acquire_fixed_as(Kind::Shared, &far, "shared", LONG).await.unwrap();
    let holders = companion("shared", "holders");
    let move_end = b"local member = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
        redis.call('ZINCRBY', KEYS[2], ARGV[2], member)
        return redis.call('PEXPIRE', KEYS[1], ARGV[1])";
    for left in [LONG / 10, LONG * 10] {
        let ms = left.as_millis().to_string();
        let shift = (left.as_micros().cast_signed() - LONG.as_micros().cast_signed()).to_string();
        server.command(&[b"PEXPIRE", b"alone", ms.as_bytes()]).await.unwrap();
        let moved: [&[u8]; 7] =
            [b"EVAL", move_end, b"2", b"shared", &holders, ms.as_bytes(), shift.as_bytes()];
        assert_eq!(server.command(&moved).await.unwrap(), "1");
        proxy.reset();
        for (key, lease) in [("alone", &alone), ("shared", &shared)] {
            until(async || (believed(&**lease)..=LONG).contains(&pttl(&server, key).await)).await;
        }
    }
    for lease in [alone, shared] {
        assert_eq!(lease.validity().loss(), None);
        lease.release().await.unwrap();
    }
    nothing_is_left(&server).await;
}
