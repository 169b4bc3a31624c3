//! The start and the end of a service, on every store: a store that starts later, a check whether
//! it answers, and an end that interrupts no work that is done in time.
#![cfg(any(
    feature = "sqlite",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::time::Duration;

use distlock::{ClosedBy, Error, Owner};
use futures_util::FutureExt;

use crate::support::{Store, connect, eventually};

/// Limit for expected events. Longer than a stall of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

on_every_store!(
    a_drain_waits_for_guards_and_refuses_newcomers,
    a_drain_ends_remaining_holds_after_its_limit,
    a_ping_is_answered_until_the_close,
    a_clone_connects_anew,
    a_close_that_was_not_confirmed_is_not_confirmed_later,
);

async fn a_drain_waits_for_guards_and_refuses_newcomers(store: &str) {
    let server = Store::open(store).await;
    let (leaving, staying) = (connect(&server.url()).await, connect(&server.url()).await);
    let owner = Owner::new();
    let held = leaving.lock("held").unwrap().owner(&owner).acquire().await.unwrap();
    let others = staying.lock("busy").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(leaving.lock("busy").unwrap().acquire());
    let queued = async || staying.inspect("busy").await.unwrap().len() == 2;
    eventually("it waits", queued).await;

    let drain = leaving.drain(PATIENCE * 2);
    tokio::pin!(drain);
    assert!(drain.as_mut().now_or_never().is_none(), "nobody waited for the guard");
    is_drained("the waiter", tokio::time::timeout(PATIENCE, waiter).await.unwrap().unwrap());
    let left = async || staying.inspect("busy").await.unwrap().len() == 1;
    eventually("it has left the queue", left).await;
    for (what, late) in [
        ("acquire", leaving.lock("a").unwrap().acquire().await.map(drop)),
        ("try_acquire", leaving.lock("a").unwrap().try_acquire().await.map(drop)),
        ("a set", leaving.all(["a", "b"]).unwrap().acquire().await.map(drop)),
        ("permits", leaving.semaphore("p", 2).unwrap().acquire().await.map(drop)),
        ("campaign", leaving.election("e").unwrap().campaign("x").await.map(drop)),
    ] {
        is_drained(what, late);
    }
    // The work continues as before, also if it acquires its own lock again.
    held.renew().await.unwrap();
    let again = leaving.lock("held").unwrap().owner(&owner).acquire().await.unwrap();
    again.release().await.unwrap();
    assert!(drain.as_mut().now_or_never().is_none(), "there is still a guard");
    held.release().await.unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, drain).await.expect("it is over").unwrap(), 0);
    assert!(matches!(leaving.names("").await, Err(Error::Closed { .. })));
    others.release().await.unwrap();
}

async fn a_drain_ends_remaining_holds_after_its_limit(store: &str) {
    let server = Store::open(store).await;
    let (leaving, staying) = (connect(&server.url()).await, connect(&server.url()).await);
    let stubborn = leaving.lock("stubborn").unwrap().acquire().await.unwrap();
    let dropped = leaving.lock("dropped").unwrap().acquire().await.unwrap();
    drop(dropped);
    // Long enough for the release of the other one.
    assert_eq!(leaving.drain(Duration::from_secs(5)).await.unwrap(), 1);
    assert!(!stubborn.is_valid());
    let next = staying.all(["stubborn", "dropped"]).unwrap().wait(PATIENCE).acquire().await;
    next.expect("both are free").release().await.unwrap();
}

async fn a_ping_is_answered_until_the_close(store: &str) {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let took = locks.ping().await.unwrap();
    assert!(!took.is_zero());
    assert!(locks.names("").await.unwrap().is_empty(), "a ping leaves nothing");
    if let Store::Server(server) = &server {
        server.stop();
        let silent = locks.ping().await.unwrap_err();
        assert!(matches!(silent, Error::Unavailable { op: "ping", .. }), "{silent}");
        server.resume();
        eventually("it answers again", async || locks.ping().await.is_ok()).await;
    }
    locks.close().await.unwrap();
    assert!(matches!(locks.ping().await, Err(Error::Closed { .. })));
}

/// A file has no server that could be silent.
async fn a_close_that_was_not_confirmed_is_not_confirmed_later(store: &str) {
    let server = Store::open(store).await;
    let Store::Server(server) = &server else { return };
    let locks = connect(&server.url()).await;
    let held = locks.lock("a").unwrap().acquire().await.unwrap();
    server.stop();
    let first = locks.close().await.unwrap_err();
    assert!(matches!(first, Error::Unavailable { op: "close", .. }), "{first}");
    assert!(!held.is_valid());
    server.resume();
    let second = locks.clone().close().await.unwrap_err();
    let said = second.to_string();
    assert!(said.contains("the first close was not confirmed"), "{said}");
    assert!(matches!(second, Error::Unavailable { op: "close", .. }), "{said}");
    let others = connect(&server.url()).await;
    others.lock("a").unwrap().wait(PATIENCE * 3).acquire().await.unwrap().release().await.unwrap();
}

async fn a_clone_connects_anew(store: &str) {
    let server = Store::open(store).await;
    let connect = distlock::connect(server.url()).timeout(PATIENCE).retry(PATIENCE);
    let (one, other) = (connect.clone().await.unwrap(), connect.await.unwrap());
    one.close().await.unwrap();
    other.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

fn is_drained<T: std::fmt::Debug>(what: &str, answer: Result<T, Error>) {
    let drained = matches!(answer, Err(Error::Closed { by: ClosedBy::Drain, .. }));
    assert!(drained, "{what}: {answer:?}");
}

/// A port without a listener. A store listens there a while later.
#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_waits_for_a_store_that_comes_later() {
    let server = lock_lab::Redis::start().await.unwrap();
    let behind = server.addr();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let url = server.url().replace(&behind.to_string(), &address.to_string());
    let once = distlock::connect(&url).await.unwrap_err();
    assert!(matches!(once, Error::Unavailable { .. }), "{once}");

    let connecting = tokio::spawn(distlock::connect(&url).retry(PATIENCE).into_future());
    // The store starts at this address after the first tries have failed.
    let door = tokio::net::TcpListener::bind(address).await.unwrap();
    let serving = tokio::spawn(async move {
        // One try is rejected.
        drop(door.accept().await.unwrap());
        loop {
            let (mut near, _) = door.accept().await.unwrap();
            let mut far = tokio::net::TcpStream::connect(behind).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let locks = connecting.await.unwrap().unwrap();
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    locks.close().await.unwrap();
    serving.abort();
}

#[tokio::test]
async fn an_empty_limit_and_a_bad_url_are_not_retried() {
    let nothing = distlock::connect("redis://127.0.0.1:1").timeout(Duration::ZERO).await;
    let told = nothing.unwrap_err();
    assert!(told.to_string().contains("invalid timeout"), "{told}");
    // Retrying would take an hour.
    let long = Duration::from_secs(3600);
    let unknown = distlock::connect("reddis://127.0.0.1").retry(long).await.unwrap_err();
    assert!(matches!(unknown, Error::InvalidUrl { .. }), "{unknown}");
}

/// A server that accepts connections and sends nothing.
#[cfg(feature = "redis")]
#[tokio::test]
async fn a_timeout_ends_a_try() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let limit = Duration::from_millis(200);
    let told = distlock::connect(&url).timeout(limit).await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { .. }), "{told}");
    assert!(told.to_string().contains("within 200ms"), "{told}");
}
