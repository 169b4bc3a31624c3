//! A process that stands still, as one that is stopped, beside a store that is well.
#![cfg(any(feature = "sqlite", feature = "redis", feature = "postgres", feature = "mysql"))]

use std::{env, io, process::Stdio, time::Duration};

use distlock::{Error, LossReason};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use crate::support::{Store, connect, eventually};

const TTL: Duration = Duration::from_secs(3);
const URL: &str = "STANDSTILL_URL";
/// What the waiter says when it is in the queue, and when it has lost its place.
const QUEUED: &str = "queued";
const LOST: &str = "has lost its place";

/// It may have been granted meanwhile, and another client after it.
async fn a_waiter_that_stood_still_has_lost_its_place(store: &str) {
    let server = Store::open(store).await;
    let other = connect(&server.url()).await;
    let held = other.lock("a").unwrap().acquire().await.unwrap();
    let mut waiter = Command::new(env::current_exe().unwrap())
        .args(["standstill::waiter", "--exact", "--ignored", "--nocapture"])
        .env(URL, server.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(waiter.stdout.take().unwrap()).lines();
    while said.next_line().await.unwrap().expect("it is queued") != QUEUED {}
    held.release().await.unwrap();
    let next = other.lock("a").unwrap().acquire().await.unwrap();
    waiter.stdin.take().unwrap().write_all(b"go on\n").await.unwrap();
    let mut told = Vec::new();
    while let Some(line) = said.next_line().await.unwrap() {
        told.push(line);
    }
    assert!(told.iter().any(|line| line == LOST), "{told:?}");
    next.release().await.unwrap();
}

/// This program again: one thread, which reads a line while it waits for a lock.
#[tokio::test]
#[ignore = "another test starts it"]
async fn waiter() {
    let Ok(url) = env::var(URL) else { return };
    let locks = connect(&url).await;
    let waiting = tokio::spawn(locks.lock("a").unwrap().ttl(TTL).acquire());
    let is_queued = async || locks.inspect("a").await.unwrap().len() == 2;
    eventually("it is in the queue", is_queued).await;
    println!("\n{QUEUED}");
    io::stdin().read_line(&mut String::new()).unwrap();
    match waiting.await.unwrap() {
        // A reason that a wait through outages outlasts.
        Err(Error::PlaceLost { reason: LossReason::Expired, .. }) => println!("\n{LOST}"),
        other => println!("\n{other:?}"),
    }
}

// etcd has a test of its own.
test_on!("sqlite" sqlite a_waiter_that_stood_still_has_lost_its_place);
test_on!("redis" redis a_waiter_that_stood_still_has_lost_its_place);
test_on!("postgres" postgres a_waiter_that_stood_still_has_lost_its_place);
test_on!("mysql" mysql a_waiter_that_stood_still_has_lost_its_place);
