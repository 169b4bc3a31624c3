//! Broken networks, dead servers, dead clients, foreign clients.

use std::{sync::Arc, time::Duration};

use lock_core::{Clock, DistributedLock, Error, LossReason};
use lock_lab::Proxy;
use lock_redis::RedisLock;

use crate::lab::{bounded::bounded, undisturbed::undisturbed, *};

const TTL: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_lost_push_is_made_up_for_by_the_round() {
    let (server, proxy, far, near) = far_and_near().await;
    let lease = acquire(&near, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&far, &server, "orders", Duration::from_secs(3)).await;
    proxy.drop_next_reply();
    lease.release().await.unwrap();
    let lease = waiter.granted().await;
    assert_eq!(proxy.stats().replies_dropped, 1);
    assert!(far.clock().now() < lease.validity().until());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_push_that_comes_after_its_grant_is_over_grants_nothing() {
    let (server, proxy, far, near) = far_and_near().await;
    let ttl = Duration::from_secs(3);
    let lease = acquire(&near, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&far, &server, "orders", ttl).await;
    // The push and all answers are held back until the grant has expired and another attempt holds.
    proxy.half_open();
    lease.release().await.unwrap();
    proxy.cut();
    let holder = acquire(&near, "orders", TTL).await.unwrap();
    proxy.heal();
    let result = waiter.ended().await;
    if let Ok(late) = &result {
        // Only as a waiter after the present holder.
        assert!(late.token() > holder.token());
        assert!(holder.validity().has_ended());
    }
    // On a slow machine it has no answer for a TTL before it learns of its end.
    assert!(lost_its_place(&result) || is_unavailable(&result), "{result:?}");
    holder.renew().await.unwrap();
    holder.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_restart_without_data_ends_holders_and_waiters() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    // The waiter has its answer before this one. Without an answer it would ask again and be
    // granted.
    driver.inspect(&name("orders")).await.unwrap();
    let token = lease.token();
    server.restart().await.unwrap();
    assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
    let result = waiter.ended().await;
    assert!(lost_its_place(&result), "{result:?}");
    assert!(acquire(&driver, "orders", TTL).await.unwrap().token() > token);
}

#[tokio::test]
async fn a_request_on_its_way_is_stopped_when_its_attempt_is_withdrawn() {
    let (server, proxy, far) = behind_a_proxy().await;
    // Long enough for the client to give up the connection, make another one and withdraw on it.
    let late = Duration::from_secs(3);
    let before = proxy.stats();
    proxy.delay(late);
    let waiter = Waiter::start(&far, "orders", Duration::from_millis(600));
    until(async || proxy.stats() != before).await;
    proxy.delay(Duration::ZERO);
    waiter.attempt.cancel();
    assert!(waiter.ended().await.is_err());
    until(async || server.counters().await.unwrap().get("cmd.evalsha") > 0).await;
    let withdrawn = server.counters().await.unwrap();
    // The request must not arrive in this time, though it is due.
    tokio::time::sleep(late).await;
    let calls = server.counters().await.unwrap().since(&withdrawn);
    assert_eq!(calls.get("cmd.evalsha"), 0, "{calls}");
    assert!(left_behind(&server).await.is_empty());
}

#[tokio::test]
async fn a_request_of_a_stopped_server_is_not_executed_after_its_withdrawal() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_millis(600);
    for _ in 0..3 {
        server.stop();
        let waiters: Vec<_> =
            (0..20).map(|i| Waiter::start(&driver, &format!("n{i}"), ttl)).collect();
        for waiter in waiters {
            assert!(is_unavailable(&waiter.ended().await));
        }
        server.resume();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_dead_waiter_in_the_middle_is_passed_over() {
    let (server, proxy, dying, near) = far_and_near().await;
    // Their TTL is far longer than this test, because their rounds would be counted.
    let lease = acquire(&near, "orders", TTL * 60).await.unwrap();
    let first = Waiter::queued(&near, &server, "orders", TTL * 60).await;
    let dead = Waiter::queued(&dying, &server, "orders", Duration::from_secs(3)).await;
    let last = Waiter::queued(&near, &server, "orders", TTL * 60).await;
    proxy.cut();
    assert!(is_unavailable(&dead.ended().await));
    lease.release().await.unwrap();
    let before = server.counters().await.unwrap();
    first.granted().await.release().await.unwrap();
    last.granted().await.release().await.unwrap();
    // The dead waiter never had the lock: no round, and only one push.
    let calls = server.counters().await.unwrap().since(&before);
    assert_eq!((calls.get("cmd.evalsha"), calls.get("cmd.publish")), (2, 1), "{calls}");
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_dead_holder_is_followed_within_its_ttl() {
    let (server, proxy, dying, near) = far_and_near().await;
    let ttl = Duration::from_secs(3);
    let _held = acquire(&dying, "orders", ttl).await.unwrap();
    // Their own TTL is far longer, so that none of their rounds helps in time.
    let first = Waiter::queued(&near, &server, "orders", TTL * 18).await;
    let second = Waiter::queued(&near, &server, "orders", TTL * 18).await;
    proxy.cut();
    let cut = Clock::Boot.now();
    let lease = first.granted().await;
    let took = Clock::Boot.now().since(cut);
    assert!(took < TTL * 3, "{took:?}");
    lease.release().await.unwrap();
    second.granted().await.release().await.unwrap();
}

#[tokio::test]
async fn a_foreign_holder_is_waited_for_and_a_foreign_poller_is_kept_out() {
    let (server, driver) = one_driver().await;
    let set: &[&[u8]] = &[b"SET", b"orders", b"token", b"NX", b"PX", b"60000"];
    assert_eq!(server.command(set).await.unwrap(), "OK");
    assert!(is_contended(&try_acquire(&driver, "orders", TTL).await));
    let waiter = Waiter::queued(&driver, &server, "orders", TTL * 18).await;
    let queue = driver.inspect(&name("orders")).await.unwrap();
    assert_eq!((queue.len(), queue[0].attempt, &queue[0].holder.description), (2, None, &None));
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    let freed = Clock::Boot.now();
    let lease = waiter.granted().await;
    // Before its first round.
    assert!(Clock::Boot.now().since(freed) < TTL * 3);
    assert_eq!(server.command(set).await.unwrap(), "(nil)");
    lease.release().await.unwrap();
    assert_eq!(server.command(set).await.unwrap(), "OK");
}

/// The first in line polls a foreign holder. After it the second one does, which is told so, or finds
/// out when the first one dies. Their rounds are far away.
#[tokio::test]
async fn a_foreign_holder_is_polled_after_the_first_in_line_has_left_or_died() {
    for dies in [false, true] {
        let (server, proxy, far, near) = far_and_near().await;
        let set: &[&[u8]] = &[b"SET", b"orders", b"token"];
        assert_eq!(server.command(set).await.unwrap(), "OK");
        let first = Waiter::queued(&far, &server, "orders", Duration::from_secs(3)).await;
        let second = Waiter::queued(&near, &server, "orders", TTL * 60).await;
        match dies {
            true => proxy.cut(),
            false => first.attempt.cancel(),
        }
        assert!(first.ended().await.is_err());
        until(async || queue_length(&server, "orders").await == 1).await;
        server.command(&[b"DEL", b"orders"]).await.unwrap();
        second.granted().await.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_foreign_holder_that_dies_is_followed_at_its_expiry() {
    let (server, driver) = one_driver().await;
    server.command(&[b"SET", b"orders", b"token", b"NX", b"PX", b"700"]).await.unwrap();
    let start = Clock::Boot.now();
    let lease = acquire(&driver, "orders", TTL * 18).await.unwrap();
    let took = Clock::Boot.now().since(start);
    // Before its first round.
    assert!(took < TTL * 3, "{took:?}");
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_key_of_another_type_is_a_foreign_holder() {
    let (server, driver) = one_driver().await;
    server.command(&[b"HSET", b"orders", b"redisson", b"1"]).await.unwrap();
    assert!(is_contended(&try_acquire(&driver, "orders", TTL).await));
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    assert_eq!(driver.inspect(&name("orders")).await.unwrap().len(), 2);
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    waiter.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_renewal_never_touches_the_lock_of_another_holder() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", Duration::from_secs(3)).await.unwrap();
    server.command(&[b"SET", b"orders", b"token", b"PX", b"60000"]).await.unwrap();
    assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
    lease.release().await.unwrap();
    let pttl: u64 = server.command(&[b"PTTL", b"orders"]).await.unwrap().parse().unwrap();
    assert!(pttl > 50_000, "{pttl}");
}

#[tokio::test]
async fn a_blackholed_server_is_an_error_in_time() {
    let server = server().await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    proxy.cut();
    let url = server.url_via(&proxy);
    let connecting = bounded("a silent server", Duration::from_secs(5), try_driver(&url));
    let error = connecting.await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

/// A balancer has dropped an idle connection without a word. The next renewal is hours away.
#[tokio::test]
async fn a_connection_that_fell_silent_is_noticed_while_an_attempt_waits() {
    let (server, proxy, far, near) = far_and_near().await;
    let hours = Duration::from_secs(12 * 3600);
    let held = acquire(&near, "orders", hours).await.unwrap();
    let waiter = Waiter::queued(&far, &server, "orders", hours).await;
    let before = proxy.stats().connections_total;
    proxy.cut();
    held.release().await.unwrap();
    until(async || proxy.stats().connections_total > before).await;
    proxy.heal();
    waiter.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_among_others_is_no_outage() {
    let (server, proxy, far) = behind_a_proxy().await;
    let ttl = Duration::from_secs(3);
    // Longer than the time limit of a request without any answer.
    let way = Duration::from_millis(550);
    // A machine that stands still for about as long makes an outage.
    undisturbed(ttl / 10, async || late_answers(&proxy, &far, ttl, way).await).await;
    nothing_is_left(&server).await;
}

/// Holds a lock while each answer comes late, and others come all the time.
async fn late_answers(
    proxy: &Proxy,
    far: &Arc<RedisLock>,
    ttl: Duration,
    way: Duration,
) -> std::result::Result<(), String> {
    let held = acquire(far, "held", ttl).await.map_err(|error| error.to_string())?;
    let before = proxy.stats().connections_total;
    proxy.delay(way);
    let end = Clock::Boot.now() + ttl * 3;
    let others: Vec<_> = (0..20)
        .map(|i| {
            let far = far.clone();
            tokio::spawn(async move {
                // Makes answers come all the time.
                tokio::time::sleep(Duration::from_millis(55) * i).await;
                while Clock::Boot.now() < end {
                    acquire(&far, &format!("n{i}"), TTL).await?.release().await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    let mut failed = Vec::new();
    for other in others {
        failed.extend(other.await.unwrap().err());
    }
    let has_ended = held.validity().has_ended();
    let connections = proxy.stats().connections_total - before;
    proxy.delay(Duration::ZERO);
    let released = held.release().await;
    match (has_ended, connections, released.is_ok() && failed.is_empty()) {
        (false, 0, true) => Ok(()),
        _ => Err(format!("ended: {has_ended}, {connections} new, {released:?}, {failed:?}")),
    }
}
