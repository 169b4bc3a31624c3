//! The token floor: locks that a raise ends, tokens above it, and a broken record.

use std::time::{Duration, SystemTime};

use lock_core::{
    DistributedLock, Error, FencingToken, Kind, LockGuard, Locks, LossReason, wall_clock,
};
use lock_lab::{Redis, Shift};
use lock_redis::RedisLock;

use crate::lab::{self, election::*, *};

const TTL: Duration = Duration::from_secs(15);
const FLOOR: &[u8] = b"\xFFfloor";

/// Returns a token above all that the store may have granted.
async fn above_all(driver: &RedisLock) -> FencingToken {
    FencingToken::new(driver.token_floor().await.unwrap().newest.value() + 1_000_000)
}

async fn hold(locks: &Locks) -> LockGuard {
    within(locks.lock("orders").unwrap().ttl(TTL).acquire()).await.unwrap()
}

#[tokio::test]
async fn tokens_are_above_the_floor_also_after_the_clock_was_set_back() {
    for options in ["", "?mode=simple"] {
        let server = Redis::builder().appendonly(false).start().await.unwrap();
        let driver = driver(&format!("{}{options}", server.url())).await;
        let floor = above_all(&driver).await;
        driver.raise_token_floor(floor).await.unwrap();
        server.move_clocks(Shift::back(Duration::from_secs(60)), Shift::NONE).unwrap();
        let mut kinds = vec![Kind::Exclusive];
        if options.is_empty() {
            kinds.extend([Kind::Shared, permits(1, 2)]);
        }
        for (number, kind) in kinds.into_iter().enumerate() {
            let mut last = floor;
            for _ in 0..2 {
                let lease = acquire_as(kind, &driver, &format!("n{number}"), TTL).await.unwrap();
                assert!(lease.token() > last, "{options} {kind:?}: {} {last}", lease.token());
                last = lease.token();
                lease.release().await.unwrap();
            }
            assert!(last <= driver.token_floor().await.unwrap().newest, "{kind:?}");
        }
    }
}

/// An eviction may have taken its token.
#[tokio::test]
async fn a_holder_whose_token_is_lost_is_ended_by_a_raise() {
    let (server, driver) = one_driver().await;
    let locks = Locks::of(driver.clone());
    let guard = hold(&locks).await;
    server.command(&[b"DEL", &companion("orders", "fence")]).await.unwrap();
    let floor = above_all(&driver).await;
    within(locks.raise_token_floor(floor)).await.unwrap();
    assert_eq!(within(guard.lost()).await, LossReason::EntryGone);
    assert!(hold(&locks).await.token() > floor);
}

fn is_between(what: Option<SystemTime>, begin: SystemTime, end: SystemTime) {
    assert!(what.is_some_and(|what| begin <= what && what <= end), "{begin:?} {what:?} {end:?}");
}

#[tokio::test]
async fn the_time_of_a_grant_is_shown_after_a_raise() {
    let (_server, driver) = one_driver().await;
    let start = wall_clock();
    let now = start.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64;
    // Less ahead of the time than a server's clock may be.
    driver.raise_token_floor(FencingToken::new(now + 30_000_000)).await.unwrap();
    for kind in [Kind::Exclusive, Kind::Shared] {
        let lease = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        let queue = driver.inspect(&name("orders")).await.unwrap();
        is_between(queue[0].holder.granted_at, start, wall_clock());
        lease.release().await.unwrap();
    }
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leads = campaign(&driver, "orders", b"10.0.0.7", TTL).await;
    let told = next(&mut changes).await.unwrap();
    is_between(told.holder.granted_at, start, wall_clock());
    let seen = next(&mut observe(&driver, "orders").await).await.unwrap();
    assert_eq!(seen, told);
    leads.publish(b"10.0.0.8").await.unwrap();
    let told = next(&mut changes).await.unwrap();
    assert_eq!(told.holder.granted_at, seen.holder.granted_at);
    leads.release().await.unwrap();
}

async fn names_the_broken_key<T>(what: &str, answer: Result<T, Error>) {
    let Err(error) = answer else { panic!("{what} counts from a broken record") };
    let shown = error.to_string();
    assert!(matches!(error, Error::Rejected { .. }), "{what}: {shown}");
    assert!(shown.contains(r"the key \xFFfloor") && shown.contains("delete it"), "{what}: {shown}");
}

#[tokio::test]
async fn a_broken_record_is_named_and_nothing_is_granted() {
    let (server, driver) = one_driver().await;
    let simple = lab::driver(&format!("{}?mode=simple", server.url())).await;
    let held = acquire(&driver, "held", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "held", TTL).await;
    for broken in [&["SET", "garbage"], &["SET", "7"], &["RPUSH", "garbage"]] {
        server.command(&[b"DEL", FLOOR]).await.unwrap();
        server.command(&[broken[0].as_bytes(), FLOOR, broken[1].as_bytes()]).await.unwrap();
        for kind in [Kind::Exclusive, Kind::Shared, permits(1, 2)] {
            let what = format!("{kind:?}, {broken:?}");
            names_the_broken_key(&what, acquire_as(kind, &driver, "orders", TTL).await).await;
        }
        names_the_broken_key("simple", acquire(&simple, "orders", TTL).await).await;
        names_the_broken_key("floor", driver.token_floor().await).await;
        let raise = driver.raise_token_floor(FencingToken::new(7)).await;
        names_the_broken_key("raise", raise).await;
        until(async || server.command(&[b"EXISTS", b"orders"]).await.unwrap() == "0").await;
        held.renew().await.unwrap();
    }
    // The holder and the waiter have kept their places.
    server.command(&[b"DEL", FLOOR]).await.unwrap();
    held.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// The release has taken the next in line out of the queue when it finds that.
#[tokio::test]
async fn a_release_beside_a_broken_record_leaves_the_next_in_line() {
    let (server, driver) = one_driver().await;
    let held = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    for broken in [&["SET", "garbage"], &["RPUSH", "garbage"]] {
        server.command(&[broken[0].as_bytes(), FLOOR, broken[1].as_bytes()]).await.unwrap();
        names_the_broken_key("release", held.release().await).await;
        assert_eq!(queue_length(&server, "orders").await, 1);
        let queue = companion("orders", "queue");
        let expiry = server.command(&[b"PTTL", &queue]).await.unwrap();
        assert!(expiry.parse::<i64>().unwrap() > 0, "{expiry}");
        server.command(&[b"DEL", FLOOR]).await.unwrap();
    }
    held.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_login_without_the_floors_key_is_denied() {
    let server = server().await;
    let say = async |words: &str| {
        let words: Vec<_> = words.split_whitespace().map(str::as_bytes).collect();
        assert_eq!(server.command(&words).await.unwrap(), "OK");
    };
    say("ACL SETUSER plain on >plain ~orders* ~{orders* ~{distlock}* &* +@all").await;
    let url = format!("redis://plain:plain@{}", server.addr());
    let plain = driver(&url).await;
    let Err(refused) = acquire(&plain, "orders", TTL).await else { panic!("no right to the key") };
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    assert!(refused.to_string().contains("~?floor"), "{refused}");
    let prefixed = driver(&format!("{url}?prefix=orders:")).await;
    acquire(&prefixed, "x", TTL).await.unwrap().release().await.unwrap();
    say("ACL SETUSER plain ~?floor").await;
    acquire(&plain, "orders", TTL).await.unwrap().release().await.unwrap();
}
