//! Observers: broken networks, servers that lose their data, observers that do not read, and
//! remains.

use std::time::Duration;

use lock_core::{DistributedLock, Error};
use lock_lab::Redis;
use tokio::sync::mpsc;

use crate::lab::{self, bounded::bounded, election::*, *};

const TTL: Duration = Duration::from_secs(60);

async fn channels(server: &Redis) -> usize {
    let channels = server.command(&[b"PUBSUB", b"CHANNELS", b"distlock:leader:*"]).await.unwrap();
    channels.lines().filter(|line| !line.is_empty() && *line != "(nil)").count()
}

async fn ended(changes: &mut mpsc::Receiver<lock_core::Observed>) {
    within(async { while changes.recv().await.is_some() {} }).await;
}

#[tokio::test]
async fn the_last_observer_of_a_name_leaves_no_subscription() {
    let (server, driver) = one_driver().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut first = observe(&driver, "orders").await;
    let second = observe(&driver, "orders").await;
    let other = observe(&driver, "other").await;
    assert_eq!((next(&mut first).await, channels(&server).await), (None, 2));
    drop((second, other));
    until(async || channels(&server).await == 1).await;
    let leader = campaign(&driver, "orders", b"a", TTL).await;
    assert_eq!(next_within(Duration::from_secs(2), &mut first).await.unwrap().value, b"a");
    leader.release().await.unwrap();
    drop(first);
    until(async || channels(&server).await == 0 && tasks() == before).await;
    nothing_is_left(&server).await;
}

/// An observer that leaves must not end the subscription of one that comes.
#[tokio::test]
async fn observers_that_come_and_go_do_not_disturb_each_other() {
    let (server, driver) = one_driver().await;
    for _ in 0..200 {
        drop(observe(&driver, "orders").await);
        let mut changes = observe(&driver, "orders").await;
        assert_eq!(next(&mut changes).await, None);
        let leader = campaign(&driver, "orders", b"a", TTL).await;
        assert!(next_within(Duration::from_secs(2), &mut changes).await.is_some());
        leader.release().await.unwrap();
        assert!(next_within(Duration::from_secs(2), &mut changes).await.is_none());
    }
    until(async || channels(&server).await == 0).await;
}

/// Connections that break at any moment: never an older value after a newer one, and the last one
/// is reported.
#[tokio::test]
async fn a_connection_that_breaks_again_and_again_loses_no_last_value() {
    let (_server, proxy, far, near) = far_and_near().await;
    let mut changes = observe(&far, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leader = campaign(&near, "orders", b"0", TTL).await;
    let mut newest = 0;
    for n in 1..=400 {
        if n % 20 == 0 {
            proxy.reset();
        }
        leader.publish(format!("{n}").as_bytes()).await.unwrap();
        while let Ok(now) = changes.try_recv() {
            let value = String::from_utf8(now.unwrap().unwrap().value).unwrap();
            assert!(value.parse::<i32>().unwrap() >= newest);
            newest = value.parse().unwrap();
        }
    }
    while newest < 400 {
        newest = next_value(&mut changes).await.unwrap().parse().unwrap();
    }
    leader.release().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
}

/// The connection does not break, but nothing gets through. A look finds this out.
#[tokio::test]
async fn a_dead_connection_is_noticed_by_an_observer_that_only_listens() {
    let (_server, proxy, far, near) = far_and_near().await;
    let mut changes = observe(&far, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    proxy.drop_next_reply();
    let leader = campaign(&near, "orders", b"a", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("a"));
    assert_eq!(proxy.stats().replies_dropped, 1);
    leader.release().await.unwrap();
}

#[tokio::test]
async fn a_server_that_restarts_without_its_data_is_believed() {
    let (server, driver) = one_driver().await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let old = campaign(&driver, "orders", b"old", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("old"));
    server.restart().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
    drop(old);
    let new = campaign(&driver, "orders", b"new", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("new"));
    new.release().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
}

#[tokio::test]
async fn deleted_keys_are_seen() {
    let (server, driver) = one_driver().await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    let leader = campaign(&driver, "orders", b"a", TTL).await;
    assert_eq!(next_value(&mut changes).await.as_deref(), Some("a"));
    // Only its value is deleted: it still leads, and publishes a new one.
    server.command(&[b"DEL", &companion("orders", "leader")]).await.unwrap();
    leader.publish(b"b").await.unwrap();
    let mut value = next_value(&mut changes).await;
    if value.as_deref() == Some("") {
        value = next_value(&mut changes).await;
    }
    assert_eq!(value.as_deref(), Some("b"));
    server.command(&[b"FLUSHALL"]).await.unwrap();
    // The leader's next renewal announces it; an observer may see it before.
    assert!(leader.renew().await.is_err());
    assert_eq!(next(&mut changes).await, None);
}

#[tokio::test]
async fn closing_and_dropping_a_client_ends_its_observers() {
    let server = server().await;
    for close in [true, false] {
        let (driver, other) = (driver(&server.url()).await, driver(&server.url()).await);
        let leader = campaign(&other, "orders", b"a", TTL).await;
        let (mut changes, mut deaf) =
            (observe(&driver, "orders").await, observe(&driver, "orders").await);
        for n in 0..200 {
            leader.publish(&[n]).await.unwrap();
        }
        if close {
            driver.close().await.unwrap();
            let closed = driver.observe(&name("orders")).await;
            assert!(matches!(closed, Err(Error::Closed { .. })), "{closed:?}");
        }
        drop(driver);
        ended(&mut changes).await;
        ended(&mut deaf).await;
        until(async || channels(&server).await == 0).await;
        leader.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_without_the_right_to_observe_is_denied() {
    let server = server().await;
    let user = "ACL SETUSER few on >pass ~* resetchannels &distlock:* +@all";
    let words: Vec<_> = user.split_whitespace().map(str::as_bytes).collect();
    server.command(&words).await.unwrap();
    let driver = driver(&format!("redis://few:pass@{}", server.addr())).await;
    let mut changes = observe(&driver, "orders").await;
    assert_eq!(next(&mut changes).await, None);
    server.command(&[b"ACL", b"SETUSER", b"few", b"-subscribe"]).await.unwrap();
    let denied = within(driver.observe(&name("orders"))).await;
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
    // The error comes with the next look.
    let denied = within(changes.recv()).await;
    assert!(matches!(denied, Some(Err(Error::Denied { .. }))), "{denied:?}");
    assert!(within(changes.recv()).await.is_none());
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_in_time() {
    let (server, proxy, driver) = behind_a_proxy().await;
    proxy.cut();
    let orders = name("orders");
    let observed = bounded("observe", Duration::from_secs(6), driver.observe(&orders)).await;
    assert!(is_unavailable(&observed));
    let simple = lab::driver(&format!("{}?mode=simple", server.url())).await;
    let refused = simple.observe(&orders).await;
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}
