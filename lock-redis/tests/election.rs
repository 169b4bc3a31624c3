//! Elections: cost, observers, and remains.

use std::{sync::Arc, time::Duration};

use lock_core::{DistributedLock, Error, Holder, Kind, LossReason, Observed};
use lock_lab::Redis;
use lock_redis::RedisLock;
use tokio::sync::mpsc;

use crate::lab::{self, election::*, *};

const TTL: Duration = Duration::from_secs(600);

/// Waits until each observer is told of this value.
async fn all_see(
    observers: &mut [(Arc<RedisLock>, mpsc::Receiver<Observed>)],
    value: Option<&str>,
) {
    for (_, changes) in observers {
        assert_eq!(next_value(changes).await.as_deref(), value);
    }
}

#[tokio::test]
async fn campaign_proclaim_and_resign_are_one_command_each_and_a_look_of_each_observer() {
    let (server, driver) = one_driver().await;
    warm(&driver).await;
    let mut observers = Vec::new();
    for count in [0, 10] {
        for _ in 0..count {
            let client = lab::driver(&server.url()).await;
            let mut changes = observe(&client, "orders").await;
            assert_eq!(next(&mut changes).await, None);
            observers.push((client, changes));
        }
        let before = server.counters().await.unwrap();
        let leader = campaign(&driver, "orders", b"a", TTL).await;
        all_see(&mut observers, Some("a")).await;
        let campaigned = server.counters().await.unwrap();
        leader.publish(b"b").await.unwrap();
        all_see(&mut observers, Some("b")).await;
        let published = server.counters().await.unwrap();
        leader.release().await.unwrap();
        all_see(&mut observers, None).await;
        let released = server.counters().await.unwrap();
        for since in
            [campaigned.since(&before), published.since(&campaigned), released.since(&published)]
        {
            let calls = (since.get("cmd.evalsha"), since.get("cmd.publish"));
            println!("{count} observers: {calls:?} requests and publishes");
            // An observer also looks every few seconds.
            assert!((1 + count..=1 + 2 * count).contains(&calls.0), "{calls:?}");
            assert_eq!(calls.1, 1);
        }
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_candidate_looks_like_any_exclusive_entry() {
    let (server, driver) = one_driver().await;
    let mut request = candidate("orders", b"value", TTL);
    request.holder = "the night shift".into();
    let leader = acquire_request(&driver, request).await;
    let second = Candidate::queued(&driver, "orders", b"value", TTL).await;
    let entries = driver.inspect(&name("orders")).await.unwrap();
    let shown: Vec<_> = entries.iter().map(|e| (e.kind, e.holder.description.as_deref())).collect();
    let me = lock_core::this_process();
    let expected = [(Kind::Exclusive, Some("the night shift")), (Kind::Exclusive, Some(&*me))];
    assert_eq!(shown, expected);
    let seen = next(&mut observe(&driver, "orders").await).await.unwrap();
    assert_eq!(seen.holder.description.as_deref(), Some("the night shift"));
    assert_eq!(seen.holder.token, Some(leader.token()));
    second.attempt.cancel();
    assert!(second.task.await.unwrap().is_err());
    leader.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn only_the_leader_publishes() {
    let (_server, driver) = one_driver().await;
    let plain = acquire(&driver, "orders", TTL).await.unwrap();
    assert!(matches!(plain.publish(b"x").await, Err(Error::Unsupported { .. })));
}

#[tokio::test]
async fn a_revoked_leader_is_over_at_once() {
    let (server, driver) = one_driver().await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leader = campaign(&driver, "orders", b"a", TTL).await;
    assert!(next(&mut changes).await.is_some());
    let attempt = driver.inspect(&name("orders")).await.unwrap()[0].attempt.unwrap();
    assert!(driver.revoke(&name("orders"), attempt).await.unwrap());
    assert_eq!(next_within(Duration::from_secs(2), &mut changes).await, None);
    assert_eq!(within(leader.validity().lost()).await, LossReason::EntryGone);
    nothing_is_left(&server).await;
}

/// The value is renewed with the lock, and lives no longer than the lock.
#[tokio::test]
async fn a_value_lives_as_long_as_its_lock() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(9);
    let leader = campaign(&driver, "orders", b"a", ttl).await;
    let first = leader.validity().until();
    until(async || leader.validity().until() > first + ttl).await;
    leader.renew().await.unwrap();
    // In one command: a round may come at any time. Before Redis 7.2 the clock goes on within it.
    let script = b"return {redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])}";
    let both: &[&[u8]] = &[b"EVAL", script, b"2", b"orders", &companion("orders", "leader")];
    let ends = server.command(both).await.unwrap();
    let (lock, value) = ends.split_once('\n').unwrap();
    let [lock, value] = [lock, value].map(|millis| millis.parse::<u64>().unwrap());
    assert!(lock > 0 && lock.abs_diff(value) <= 10, "{lock} {value}");
    let seen = next(&mut observe(&driver, "orders").await).await.unwrap();
    assert_eq!(seen.value, b"a");
    leader.release().await.unwrap();
    let mut fixed = candidate("orders", b"a", ttl);
    fixed.term = lock_core::Term::Fixed;
    let _fixed = acquire_request(&driver, fixed).await;
    nothing_is_left(&server).await;
}

/// No other client makes a request, and no push is sent.
#[tokio::test]
async fn a_leader_that_expires_is_reported_in_time() {
    let (_server, driver) = one_driver().await;
    let ttl = Duration::from_millis(1400);
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    for _ in 0..3 {
        let mut fixed = candidate("orders", b"a", ttl);
        fixed.term = lock_core::Term::Fixed;
        let leader = acquire_request(&driver, fixed).await;
        assert!(next(&mut changes).await.is_some());
        leader.publish(b"b").await.unwrap();
        assert!(next(&mut changes).await.is_some());
        // An observer looks by itself after 2.5 s at the earliest.
        assert_eq!(next_within(ttl + Duration::from_secs(1), &mut changes).await, None);
    }
}

#[tokio::test]
async fn a_holder_without_a_value_leads_with_an_empty_one() {
    let (server, driver) = one_driver().await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leader = campaign(&driver, "orders", b"a", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("a"));
    let plain = Waiter::queued(&driver, &server, "orders", TTL).await;
    let heir = Candidate::queued(&driver, "orders", b"heir", TTL).await;
    leader.release().await.unwrap();
    let plain = plain.granted().await;
    let seen = next_within(Duration::from_secs(2), &mut changes).await.unwrap();
    assert_eq!((&seen.value[..], seen.token), (&b""[..], plain.token()));
    assert_eq!(seen.holder.description.as_deref(), Some(&*lock_core::this_process()));
    plain.release().await.unwrap();
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("heir"));
    heir.leads().await.release().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
    // No push, but a look finds it.
    let plain = acquire(&driver, "orders", TTL).await.unwrap();
    assert_eq!(next(&mut changes).await.unwrap().token, plain.token());
    plain.release().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
    for kind in [Kind::Shared, permits(1, 1)] {
        let leader = campaign(&driver, "orders", b"a", TTL).await;
        assert_eq!(next_value(&mut changes).await.as_deref(), Some("a"));
        let shares = Waiter::queued_as(kind, &driver, &server, "orders", TTL).await;
        leader.release().await.unwrap();
        assert_eq!(next_within(Duration::from_secs(2), &mut changes).await, None, "{kind}");
        shares.granted().await.release().await.unwrap();
    }
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_foreign_holder_comes_after_the_last_leader_and_before_the_next() {
    let (server, driver) = one_driver().await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leader = campaign(&driver, "orders", b"a", TTL).await;
    let first = next(&mut changes).await.unwrap();
    set_foreign(&server).await;
    let foreign = next(&mut changes).await.unwrap();
    assert_eq!((&foreign.value[..], &foreign.holder), (&b""[..], &Holder::default()));
    assert_eq!(foreign.token, first.token);
    leader.release().await.unwrap();
    let heir = Candidate::queued(&driver, "orders", b"b", TTL).await;
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    let heir = heir.leads().await;
    // There may have been no leader for a moment.
    let mut last = next(&mut changes).await;
    if last.is_none() {
        last = next(&mut changes).await;
    }
    assert!(last.as_ref().is_some_and(|last| last.token > foreign.token), "{last:?}");
    heir.release().await.unwrap();
    nothing_is_left(&server).await;
}

async fn set_foreign(server: &Redis) {
    server.command(&[b"SET", b"orders", b"foreign", b"PX", b"600000"]).await.unwrap();
}

/// All databases share the channels.
#[tokio::test]
async fn databases_do_not_get_each_others_pushes() {
    let server = server().await;
    let (zero, one) = (driver(&server.url()).await, driver(&format!("{}/1", server.url())).await);
    let mut changes = observe(&zero, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let other = campaign(&one, "orders", b"one", TTL).await;
    let mut others = observe(&one, "orders").await;
    assert_eq!(next_value(&mut others).await.as_deref(), Some("one"));
    let leader = campaign(&zero, "orders", b"zero", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("zero"));
    // Here the lock that hands over has no value.
    leader.release().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
    let plain = acquire(&one, "plain", TTL).await.unwrap();
    let mut changes = observe(&zero, "plain").await;
    assert_eq!(next(&mut changes).await, None);
    let heir = Candidate::queued(&one, "plain", b"heir", TTL).await;
    plain.release().await.unwrap();
    let heir = heir.leads().await;
    let leader = campaign(&zero, "plain", b"zero", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("zero"));
    for lease in [other, heir, leader] {
        lease.release().await.unwrap();
    }
}
