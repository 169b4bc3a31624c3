//! Servers and proxies without RESP3: pushes come on a connection of their own.

use std::{sync::Arc, time::Duration};

use lock_core::{DistributedLock, Error};
use lock_lab::{Authority, Builder, Redis, RedisCluster, RedisSentinels};
use lock_redis::RedisLock;

use crate::lab::*;

/// A renewal, which also tells of a grant, comes after a third of it.
const TTL: Duration = Duration::from_secs(300);

/// Forbids the command that asks for RESP3 to whoever has no login.
const FORBID: [&[u8]; 4] = [b"ACL", b"SETUSER", b"default", b"-hello"];

/// A server that does not know the command that asks for RESP3.
fn without_hello() -> Builder<Redis> {
    let words = ["--rename-command", "HELLO", ""];
    words.into_iter().fold(Redis::builder().appendonly(false), Builder::arg)
}

async fn connections(server: &Redis, kind: &str) -> usize {
    let list = ["CLIENT", "LIST", "TYPE", kind].map(str::as_bytes);
    server.command(&list).await.unwrap().lines().count()
}

/// Hands a lock over twenty times, which takes a push each time.
async fn hands_over(server: &Redis, one: &Arc<RedisLock>, two: &Arc<RedisLock>) {
    let mut held = acquire(one, "orders", TTL).await.unwrap();
    for turn in 0..20 {
        let next = if turn % 2 == 0 { two } else { one };
        let waiter = Waiter::queued(next, server, "orders", TTL).await;
        let token = held.token();
        held.release().await.unwrap();
        held = waiter.granted().await;
        assert!(held.token() > token);
    }
    held.release().await.unwrap();
    nothing_is_left(server).await;
}

async fn two_clients(url: &str) -> (Arc<RedisLock>, Arc<RedisLock>) {
    (driver(url).await, driver(url).await)
}

#[tokio::test]
async fn a_release_wakes_a_waiter_on_a_server_without_resp3() {
    let server = without_hello().start().await.unwrap();
    let (one, two) = two_clients(&server.url()).await;
    assert_eq!(connections(&server, "pubsub").await, 2);
    hands_over(&server, &one, &two).await;
}

#[tokio::test]
async fn a_user_that_may_not_ask_for_resp3_gets_pushes() {
    let server = server().await;
    let user = "ACL SETUSER app on >secret ~* &* +@all -hello";
    let user: Vec<_> = user.split(' ').map(str::as_bytes).collect();
    server.command(&user).await.unwrap();
    server.command(&FORBID).await.unwrap();
    // With a login, HELLO itself is allowed to everybody.
    for login in ["", "app:secret@"] {
        let url = server.url().replace("redis://", &format!("redis://{login}"));
        let (one, two) = two_clients(&url).await;
        hands_over(&server, &one, &two).await;
    }
}

#[tokio::test]
async fn a_release_wakes_a_waiter_over_tls_without_resp3() {
    let authority = Authority::new().unwrap();
    let issued = authority.server(&["127.0.0.1"]).unwrap();
    let options = without_hello().password("secret").tls(issued.certificate(), issued.key());
    let server = options.start().await.unwrap();
    let url = format!("{}?tls=verify&ca={}", server.url(), authority.file().display());
    let (one, two) = two_clients(&url).await;
    hands_over(&server, &one, &two).await;
}

#[tokio::test]
async fn a_broken_connection_for_pushes_is_made_again() {
    let server = without_hello().start().await.unwrap();
    let (one, two) = two_clients(&server.url()).await;
    for _ in 0..3 {
        server.command(&[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await.unwrap();
        until(async || connections(&server, "pubsub").await == 2).await;
        hands_over(&server, &one, &two).await;
    }
    drop((one, two));
    // One connection is the test's own.
    until(async || connections(&server, "pubsub").await == 0).await;
    until(async || connections(&server, "normal").await == 1).await;
}

#[tokio::test]
async fn an_observer_hears_of_each_leader_without_resp3() {
    let server = without_hello().start().await.unwrap();
    let driver = driver(&server.url()).await;
    let mut seen = driver.observe(&name("chief")).await.unwrap();
    assert!(within(seen.recv()).await.unwrap().unwrap().is_none());
    for value in 0..20_u8 {
        let mut candidate = request("chief", TTL);
        candidate.value = Some(vec![value].into());
        let leader = within(driver.acquire(candidate, lock_core::Attempt::new())).await.unwrap();
        // Without a push, an observer looks after some seconds only.
        let soon = Duration::from_secs(60) / 20;
        let heard = tokio::time::timeout(soon, seen.recv()).await.expect("no push has come");
        assert_eq!(heard.unwrap().unwrap().unwrap().value, [value]);
        leader.release().await.unwrap();
        let gone = tokio::time::timeout(soon, seen.recv()).await.expect("no push has come");
        assert!(gone.unwrap().unwrap().is_none());
    }
}

#[tokio::test]
async fn a_cluster_without_resp3_hands_over() {
    let cluster = RedisCluster::start().await.unwrap();
    for node in cluster.nodes() {
        node.command(&FORBID).await.unwrap();
    }
    let (one, two) = two_clients(&cluster.url()).await;
    let slot = RedisCluster::slot_of(b"orders");
    let owner = cluster.owner(slot).await.unwrap();
    hands_over(cluster.node(owner), &one, &two).await;
}

#[tokio::test]
async fn a_failover_without_resp3_is_followed() {
    let builder = RedisSentinels::builder().in_memory().down_after(Duration::from_millis(800));
    let redis = builder.start().await.unwrap();
    for node in redis.nodes() {
        node.command(&FORBID).await.unwrap();
    }
    for sentinel in redis.sentinels() {
        sentinel.command(&FORBID).await.unwrap();
    }
    let (one, two) = two_clients(&redis.url()).await;
    hands_over(redis.node(0), &one, &two).await;
    let held = acquire(&one, "kept", TTL).await.unwrap();
    assert_eq!(redis.node(0).command(&[b"WAIT", b"2", b"5000"]).await.unwrap(), "2");
    redis.node(0).kill();
    let new = redis.primary_after(0).await.unwrap();
    within(held.renew()).await.unwrap();
    held.release().await.unwrap();
    hands_over(redis.node(new), &one, &two).await;
}

#[tokio::test]
async fn a_refused_login_shows_no_password() {
    let words = ["--rename-command", "AUTH", ""];
    let options = words.into_iter().fold(without_hello(), Builder::arg);
    let server = options.start().await.unwrap();
    let url = server.url().replace("redis://", "redis://:open-sesame@");
    let refused = try_driver(&url).await.unwrap_err();
    let shown = format!("{refused} {refused:?} {}", with_sources(&refused));
    assert!(!shown.contains("sesame"), "{shown}");
}

fn with_sources(error: &Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut shown = String::new();
    while let Some(error) = source {
        shown += &format!(" {error} {error:?}");
        source = error.source();
    }
    shown
}
