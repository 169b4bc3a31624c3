//! One client and a few clients: grants, queue, counts, descriptions.

use std::time::Duration;

use lock_core::{
    Attempt, Clock, DistributedLock, Error, FencingToken, LossReason, Requirement, wall_clock,
};
use lock_lab::Redis;

use crate::lab::{bounded::bounded, *};

const TTL: Duration = Duration::from_secs(10);
/// So long that no renewal falls into a count.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn acquire_and_release_are_two_commands() {
    let server = server().await;
    let locks = locks(&server.url()).await;
    let lock = locks.lock("orders").unwrap().ttl(LONG);
    let before = server.counters().await.unwrap();
    for _ in 0..100 {
        lock.acquire().await.unwrap().release().await.unwrap();
        lock.try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
    let calls = server.counters().await.unwrap().since(&before);
    assert_eq!(calls.get("cmd.evalsha"), 400, "{calls}");
    for other in ["script|load", "eval", "ping", "publish", "get|", "subscribe", "client|info"] {
        assert_eq!(calls.get(&format!("cmd.{other}")), 0, "{calls}");
    }
    nothing_is_left(&server).await;
}

/// With those inside of the scripts, which are most of what a hand-over costs the server.
#[tokio::test]
async fn a_hand_over_is_18_commands() {
    const PAIRS: u64 = 20;
    /// The two calls of scripts, and what no script runs.
    const OUTSIDE: [&str; 4] = ["cmd.evalsha", "cmd.llen", "cmd.ping", "cmd.client"];
    let (server, one, two) = two_drivers().await;
    // A queue that was empty in between is given an expiry: one command more.
    for (behind, inside) in [(0, 17), (1, 16)] {
        let mut lease = acquire(&one, "orders", LONG).await.unwrap();
        let mut waiters = Vec::new();
        for _ in 0..behind {
            waiters.push(Waiter::queued(&one, &server, "orders", LONG).await);
        }
        let before = server.counters().await.unwrap();
        for pair in 0..PAIRS {
            let driver = if pair % 2 == 0 { &two } else { &one };
            waiters.push(Waiter::queued(driver, &server, "orders", LONG).await);
            lease.release().await.unwrap();
            lease = waiters.remove(0).granted().await;
        }
        let calls = server.counters().await.unwrap().since(&before);
        let counted = calls.iter().filter(|(what, _)| what.starts_with("cmd."));
        let counted = counted.filter(|(what, _)| !OUTSIDE.contains(what));
        let sum: u64 = counted.map(|(_, count)| count).sum();
        assert_eq!((calls.get("cmd.evalsha"), sum / PAIRS), (2 * PAIRS, inside), "{calls}");
        // Only the library looks at the head of the queue so.
        assert_eq!(calls.get("cmd.lindex"), 0, "{calls}");
        lease.release().await.unwrap();
        for waiter in waiters {
            waiter.granted().await.release().await.unwrap();
        }
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn the_key_is_what_foreign_clients_write() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    assert_eq!(server.command(&[b"TYPE", b"orders"]).await.unwrap(), "string");
    let pttl: u64 = server.command(&[b"PTTL", b"orders"]).await.unwrap().parse().unwrap();
    assert!((9000..=10000).contains(&pttl), "{pttl}");
    let refused = server.command(&[b"SET", b"orders", b"x", b"NX", b"PX", b"1000"]).await.unwrap();
    assert_eq!(refused, "(nil)");
    lease.release().await.unwrap();
    assert_eq!(server.command(&[b"EXISTS", b"orders"]).await.unwrap(), "0");
}

#[tokio::test]
async fn names_are_escaped_unless_they_are_native() {
    let server = server().await;
    let escaped = driver(&format!("{}?prefix=app:", server.url())).await;
    let native = driver(&format!("{}?layout=native", server.url())).await;
    for (driver, key) in [(&escaped, "app:a%2Fb%7D"), (&native, "a/b}")] {
        let lease = acquire(driver, "a/b}", TTL).await.unwrap();
        assert_eq!(server.command(&[b"EXISTS", key.as_bytes()]).await.unwrap(), "1", "{key}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn waiters_are_served_in_order_and_by_pushes() {
    let (server, one, two) = two_drivers().await;
    let mut lease = acquire(&one, "orders", LONG).await.unwrap();
    let mut waiters = Vec::new();
    for i in 0..6 {
        let driver = if i % 2 == 0 { &one } else { &two };
        waiters.push(Waiter::queued(driver, &server, "orders", LONG).await);
    }
    let before = server.counters().await.unwrap();
    for waiter in waiters {
        let token = lease.token();
        lease.release().await.unwrap();
        lease = waiter.granted().await;
        assert!(lease.token() > token);
    }
    let calls = server.counters().await.unwrap().since(&before);
    assert_eq!((calls.get("cmd.evalsha"), calls.get("cmd.publish")), (6, 6), "{calls}");
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_try_never_overtakes_and_leaves_nothing() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let before = server.keys().await.unwrap();
    assert!(is_contended(&try_acquire(&driver, "orders", TTL).await));
    assert_eq!(server.keys().await.unwrap(), before);
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    // The key vanishes while a waiter is queued: it is the waiter's turn, not the try's.
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    assert!(is_contended(&try_acquire(&driver, "orders", TTL).await));
    waiter.granted().await.release().await.unwrap();
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn release_and_renew_act_on_the_own_grant_only() {
    let (server, driver) = one_driver().await;
    let stale = acquire(&driver, "orders", TTL).await.unwrap();
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    let fresh = acquire(&driver, "orders", TTL).await.unwrap();
    assert!(matches!(stale.renew().await, Err(Error::Lost { .. })));
    stale.release().await.unwrap();
    stale.release().await.unwrap();
    fresh.renew().await.unwrap();
    assert_eq!(server.command(&[b"EXISTS", b"orders"]).await.unwrap(), "1");
    fresh.release().await.unwrap();
}

#[tokio::test]
async fn tokens_rise_also_when_keys_are_deleted() {
    let (server, driver) = one_driver().await;
    let mut last = FencingToken::new(0);
    for round in 0..30 {
        let lease = acquire(&driver, "orders", TTL).await.unwrap();
        assert!(lease.token() > last);
        last = lease.token();
        match round % 3 {
            0 => drop(server.command(&[b"FLUSHALL"]).await.unwrap()),
            1 => drop(server.command(&[b"DEL", b"orders"]).await.unwrap()),
            _ => lease.release().await.unwrap(),
        }
    }
}

#[tokio::test]
async fn tokens_rise_also_when_the_clock_is_set_back() {
    let (server, driver) = one_driver().await;
    let mut last = acquire(&driver, "orders", TTL).await.unwrap();
    // Now the last token is an hour ahead of the clock.
    let ahead = last.token().value() + 3_600_000_000;
    let fence = companion("orders", "fence");
    server.command(&[b"SET", &fence, ahead.to_string().as_bytes()]).await.unwrap();
    for step in 1..=20 {
        let waiter = match step % 2 {
            0 => Some(Waiter::queued(&driver, &server, "orders", TTL).await),
            _ => None,
        };
        last.release().await.unwrap();
        last = match waiter {
            Some(waiter) => waiter.granted().await,
            None => acquire(&driver, "orders", TTL).await.unwrap(),
        };
        assert_eq!(last.token(), FencingToken::new(ahead + step));
    }
    last.release().await.unwrap();
}

#[tokio::test]
async fn the_queue_shows_holder_and_waiters_with_their_times() {
    let (server, driver) = one_driver().await;
    assert!(driver.inspect(&name("orders")).await.unwrap().is_empty());
    let before = wall_clock();
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let mut request = request("orders", TTL);
    request.holder = "the night shift".into();
    let attempt = Attempt::new();
    let (waiting, mine) = (driver.clone(), attempt.clone());
    let waiter = tokio::spawn(async move { waiting.acquire(request, mine).await });
    until(async || queue_length(&server, "orders").await == 1).await;

    let queue = driver.inspect(&name("orders")).await.unwrap();
    let (holder, waits) = (&queue[0].holder, &queue[1]);
    assert_eq!(holder.description.as_deref(), Some(&*lock_core::this_process()));
    assert_eq!(holder.token, Some(lease.token()));
    let since = holder.granted_at.unwrap();
    assert!(since + Duration::from_millis(1) >= before && since <= wall_clock());
    assert_eq!(waits.attempt, Some(attempt.id()));
    assert_eq!(waits.holder.description.as_deref(), Some("the night shift"));
    assert!(waits.holder.queued_at.unwrap() >= since);

    lease.release().await.unwrap();
    let lease = within(waiter).await.unwrap().unwrap();
    let queue = driver.inspect(&name("orders")).await.unwrap();
    assert_eq!(queue.len(), 1);
    assert_eq!(queue[0].attempt, Some(attempt.id()));
    assert_eq!(queue[0].holder.description.as_deref(), Some("the night shift"));
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The key must not end before the holder's deadline: another client would get in.
#[tokio::test]
async fn a_late_renewal_gives_a_fixed_term_as_long_as_its_holder_believes() {
    let (server, driver) = one_driver().await;
    let lease = acquire_fixed(&driver, "orders", TTL).await.unwrap();
    let halfway = lease.validity().until() - TTL / 2;
    tokio::time::sleep(halfway.since(Clock::Boot.now())).await;
    within(lease.renew()).await.unwrap();
    let pttl: u64 = server.command(&[b"PTTL", b"orders"]).await.unwrap().parse().unwrap();
    let believed = lease.validity().until().since(Clock::Boot.now());
    assert!(believed > TTL / 2 && Duration::from_millis(pttl) >= believed, "{pttl} {believed:?}");
    lease.release().await.unwrap();
}

#[tokio::test]
async fn deleted_keys_are_noticed_by_holders() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", Duration::from_secs(3)).await.unwrap();
    server.command(&[b"FLUSHALL"]).await.unwrap();
    assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn deleted_keys_are_noticed_by_waiters() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(3);
    let holder = acquire(&driver, "orders", ttl).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", ttl).await;
    server.command(&[b"FLUSHALL"]).await.unwrap();
    assert!(lost_its_place(&waiter.ended().await));
    assert_eq!(within(holder.validity().lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn a_deleted_queue_strands_no_waiter() {
    let (server, driver) = one_driver().await;
    for key in ["queue", "waiting"] {
        let lease = acquire(&driver, "orders", TTL).await.unwrap();
        let waiter = Waiter::queued(&driver, &server, "orders", Duration::from_secs(3)).await;
        server.command(&[b"DEL", &companion("orders", key)]).await.unwrap();
        lease.release().await.unwrap();
        match key {
            "queue" => waiter.granted().await.release().await.unwrap(),
            // Nothing else tells who waits.
            _ => assert!(lost_its_place(&waiter.ended().await)),
        }
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn flushed_scripts_are_loaded_again() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    server.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    let first = lease.validity().until();
    until(async || lease.validity().until() > first).await;
    server.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    lease.release().await.unwrap();
    server.command(&[b"SCRIPT", b"FLUSH"]).await.unwrap();
    waiter.granted().await.release().await.unwrap();
    acquire(&driver, "other", TTL).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn closing_frees_everything_and_ends_the_client() {
    let (server, closing) = one_driver().await;
    let held = acquire(&closing, "a", TTL).await.unwrap();
    let fixed = acquire_fixed(&closing, "b", TTL).await.unwrap();
    let waiter = Waiter::queued(&closing, &server, "a", TTL).await;
    closing.close().await.unwrap();
    assert!(matches!(waiter.ended().await, Err(Error::Closed { .. })));
    assert_eq!(within(held.validity().lost()).await, LossReason::Closed);
    assert_eq!(within(fixed.validity().lost()).await, LossReason::Closed);
    assert!(matches!(acquire(&closing, "a", TTL).await, Err(Error::Closed { .. })));
    assert!(matches!(closing.inspect(&name("a")).await, Err(Error::Closed { .. })));
    closing.close().await.unwrap();
    nothing_is_left(&server).await;
    let keys = server.keys().await.unwrap();
    assert!(keys.iter().all(|key| key.ends_with(b"\xFFfence")), "{keys:?}");
}

#[tokio::test]
async fn a_dropped_client_leaves_no_connection_and_no_description() {
    let server = server().await;
    let clients = async || server.counters().await.unwrap().get("clients");
    // Who asks is the only one, once those who waited for the server's start are gone.
    until(async || clients().await == 1).await;
    let locks = locks(&server.url()).await;
    locks.lock("orders").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert!(clients().await > 1);
    drop(locks);
    until(async || clients().await == 1).await;
    until(async || server.keys().await.unwrap().len() == 1).await;
}

#[tokio::test]
async fn a_restart_is_survived_only_with_every_write_on_disk() {
    let careless = server().await;
    assert!(!driver(&careless.url()).await.guarantees().meets(Requirement::SurvivesRestart));
    let durable = Redis::start().await.unwrap();
    assert!(driver(&durable.url()).await.guarantees().meets(Requirement::SurvivesRestart));
}

#[tokio::test]
async fn a_wrong_configuration_is_an_error_in_time() {
    let server = Redis::builder().appendonly(false).password("secret").start().await.unwrap();
    let host = server.addr();
    for url in [format!("redis://{host}"), format!("redis://:wrong@{host}")] {
        for mode in ["queue", "simple"] {
            let error = refused_in_time(&format!("{url}?mode={mode}")).await;
            assert!(matches!(error, Error::Denied { .. }), "{url} {mode}: {error:?}");
            assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        }
    }
    let right = driver(&format!("{}/3", server.url())).await;
    acquire(&right, "orders", TTL).await.unwrap().release().await.unwrap();
    assert_eq!(server.keys().await.unwrap(), Vec::<Vec<u8>>::new(), "it must be in database 3");
    assert!(!format!("{right:?}").contains("secret"));
    let error = refused_in_time(&format!("{}?ttl=100ms", server.url())).await;
    assert!(matches!(error, Error::InvalidOption { .. }), "{error:?}");
    server.kill();
    let error = refused_in_time(&server.url()).await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

async fn refused_in_time(url: &str) -> Error {
    bounded(url, Duration::from_secs(5), try_driver(url)).await.unwrap_err()
}

#[tokio::test]
async fn a_full_memory_is_an_error_and_stops_no_hand_over() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).await.unwrap();
    let full = acquire(&driver, "other", Duration::from_millis(600)).await.unwrap_err();
    assert!(matches!(full, Error::Unavailable { .. }), "{full:?}");
    assert!(full.to_string().contains("raise maxmemory"), "{full}");
    // A new connection does not prevent it.
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await.unwrap();
    lease.release().await.unwrap();
    let lease = waiter.granted().await;
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The rights that docs/stores/redis.md names, and no others, are enough for all that a client does.
#[tokio::test]
async fn the_documented_rights_are_enough_up_to_the_close() {
    for without in ["", " -client"] {
        let server = server().await;
        give_documented_rights(&server, without).await;
        a_client_may_do_all(&server, &documented_url(server.addr()), "app:").await;
        let forbidden = try_driver(&format!("redis://few:secret@{}", server.addr())).await;
        let outside = acquire(&forbidden.unwrap(), "orders", TTL).await;
        assert!(matches!(outside, Err(Error::Denied { .. })), "{outside:?}");
    }
}

/// The same in a database of the locks' own.
#[tokio::test]
async fn the_documented_rights_without_a_prefix_are_enough() {
    let server = server().await;
    make_user(&server, &documented_user_of(" ~* ")).await;
    a_client_may_do_all(&server, &format!("redis://few:secret@{}", server.addr()), "").await;
}

async fn a_client_may_do_all(server: &Redis, url: &str, prefix: &str) {
    let driver = driver(url).await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::start(&driver, "orders", TTL);
    let key = format!("{prefix}orders");
    until(async || queue_length(server, &key).await == 1).await;
    assert_eq!(driver.inspect(&name("orders")).await.unwrap().len(), 2);
    assert_eq!(driver.names("").await.unwrap(), [name("orders")]);
    lease.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
    driver.raise_token_floor(FencingToken::new(7)).await.unwrap();
    warm(&driver).await;
    let _held = acquire(&driver, "held", TTL).await.unwrap();
    within(driver.close()).await.unwrap();
    let held = format!("{prefix}held").into_bytes();
    assert!(!server.keys().await.unwrap().contains(&held));
    let login = format!("redis://few:secret@{}", server.addr());
    let own = redis::Client::open(login.as_str()).unwrap();
    let mut own = within(own.get_multiplexed_async_connection()).await.unwrap();
    let emptied: redis::RedisResult<()> = redis::cmd("FLUSHALL").query_async(&mut own).await;
    assert!(emptied.is_err(), "it would end the locks of all other logins");
}

/// The table of further rights of docs/stores/redis.md. Other tests have what the first three give.
#[tokio::test]
async fn each_further_right_of_the_page_can_be_given() {
    let page = include_str!("../../docs/stores/redis.md");
    let (_, table) = page.split_once("\n| right | what it gives |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|row| row.strip_prefix("| `")?.split_once("` |"));
    let rights: Vec<_> = rows.map(|(right, _)| right.replace('\\', "")).collect();
    assert_eq!(rights, ["+wait", "+info", "+config|get", "~{distlock}*"]);
    let server = server().await;
    for (more, is_told) in [(String::new(), false), (format!(" {}", rights.join(" ")), true)] {
        give_documented_rights(&server, &more).await;
        let driver = driver(&documented_url(server.addr())).await;
        let held = acquire(&driver, "orders", TTL).await.unwrap();
        let shown = driver.inspect(&name("orders")).await.unwrap();
        assert_eq!(shown[0].holder.description.is_some(), is_told, "{more}: {shown:?}");
        held.release().await.unwrap();
    }
}

/// Each hand-over would wait for a renewal.
#[tokio::test]
async fn a_user_that_may_not_send_pushes_is_refused_at_connect() {
    let server = server().await;
    for more in [" -publish", " resetchannels"] {
        give_documented_rights(&server, more).await;
        let url = documented_url(server.addr());
        let refused = try_driver(&url).await.unwrap_err();
        assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
        try_driver(&format!("{url}&mode=simple")).await.unwrap();
    }
}

#[tokio::test]
async fn a_user_that_may_not_wait_for_replicas_is_refused_at_connect() {
    let server = server().await;
    // Before Redis 7.0 the documented rights lack it.
    give_documented_rights(&server, " -wait").await;
    let url = format!("{}&wait_replicas=1", documented_url(server.addr()));
    let refused = try_driver(&url).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    assert!(refused.to_string().contains("wait"), "{refused}");
    give_documented_rights(&server, " +wait").await;
    try_driver(&url).await.unwrap();
}
