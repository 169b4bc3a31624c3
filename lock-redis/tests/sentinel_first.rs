//! A new client while a failover is under way: the sentinels still name a server that is no
//! primary.

mod lab;

use std::{net::SocketAddr, time::Duration};

use lab::{stale_sentinel::StaleSentinel, *};
use lock_core::{Clock, Effect, Error};

const TTL: Duration = Duration::from_secs(3);
/// Number of questions that a sentinel answers with the old primary.
const STALE: usize = 3;

/// Nothing listens there.
fn dead() -> SocketAddr {
    "127.0.0.1:1".parse().unwrap()
}

async fn works(url: &str) {
    acquire(&*driver(url).await, "orders", TTL).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_dead_primary_is_asked_for_again_until_another_is_named() {
    let server = lab::server().await;
    let sentinel = StaleSentinel::start(dead(), STALE, server.addr()).await;
    works(&sentinel.url("connect_timeout=1m")).await;
    assert!(sentinel.asked() > STALE, "{}", sentinel.asked());
}

#[tokio::test]
async fn a_demoted_primary_is_asked_for_again_until_another_is_named() {
    let (old, new) = (lab::server().await, lab::server().await);
    let port = new.addr().port().to_string();
    old.command(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]).await.unwrap();
    let sentinel = StaleSentinel::start(old.addr(), STALE, new.addr()).await;
    works(&sentinel.url("connect_timeout=1m")).await;
    assert!(sentinel.asked() > STALE, "{}", sentinel.asked());
}

#[tokio::test]
async fn one_sentinel_that_knows_the_new_primary_is_enough() {
    let server = lab::server().await;
    let late = StaleSentinel::start(dead(), STALE, server.addr()).await;
    let gone = "127.0.0.1:2";
    let url = format!("redis+sentinel://{gone},{}/lab?connect_timeout=1m", late.addr);
    works(&url).await;
}

#[tokio::test]
async fn a_primary_that_stays_dead_is_named_when_the_time_is_over() {
    let sentinel = StaleSentinel::start(dead(), usize::MAX, dead()).await;
    let start = Clock::Boot.now();
    let error = within(try_driver(&sentinel.url("connect_timeout=1s"))).await.unwrap_err();
    let took = Clock::Boot.now().since(start);
    assert!(matches!(error, Error::Unavailable { effect: Effect::None, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("the sentinels name 127.0.0.1:1 as the primary"), "{text}");
    assert!(sentinel.asked() > 1, "{}", sentinel.asked());
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
