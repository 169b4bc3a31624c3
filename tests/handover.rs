//! One process leaves a lock, and another one takes it up: two real processes, with one ticket in
//! an environment variable.
#![cfg(any(
    feature = "sqlite",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::{process::Stdio, time::Duration};

use distlock::{Error, LossReason, Ticket};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

use crate::support::{Store, connect};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

on_every_store!(a_successor_takes_the_lock_over);

/// The other process. It adopts the lock, prints its token, and releases on request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn successor() {
    let Ok(ticket) = std::env::var("HANDOVER_TICKET") else { return };
    let url = std::env::var("HANDOVER_URL").unwrap();
    let locks = connect(&url).await;
    let guard = locks.adopt(&ticket.parse::<Ticket>().unwrap()).await.unwrap();
    println!("\nadopted {}", guard.token());
    let mut line = String::new();
    BufReader::new(tokio::io::stdin()).read_line(&mut line).await.unwrap();
    guard.release().await.unwrap();
    println!("\nreleased");
}

fn start_successor(url: &str, ticket: &Ticket) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "handover::successor", "--nocapture"]);
    command.env("HANDOVER_TICKET", ticket.to_string()).env("HANDOVER_URL", url);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

async fn a_successor_takes_the_lock_over(store: &str) {
    let server = Store::open(store).await;
    let url = server.url();
    let (first, other) = (connect(&url).await, connect(&url).await);
    let guard = first.lock("deploy").unwrap().ttl(TTL).acquire().await.unwrap();
    let (token, held) = (guard.token(), guard.held());
    let detached = guard.detach().await;
    if !first.guarantees().detach {
        assert!(matches!(detached, Err(Error::Unsupported { .. })), "{detached:?}");
        return;
    }
    let ticket = detached.unwrap();
    first.close().await.unwrap();
    assert!(!held.is_valid());

    let mut child = start_successor(&url, &ticket);
    // Kept separately: waiting for a child closes its stdin.
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let adopted = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the successor says its token");
            if let Some(token) = line.strip_prefix("adopted ") {
                return token.to_owned();
            }
        }
    };
    let adopted = tokio::time::timeout(PATIENCE, adopted).await.expect("in time");
    assert_eq!(adopted, token.to_string());
    let again = other.adopt(&ticket).await;
    assert!(matches!(again, Err(Error::Lost { reason: LossReason::Adopted, .. })), "{again:?}");

    let waiter = tokio::spawn(other.lock("deploy").unwrap().ttl(TTL).acquire());
    // Longer than the TTL: the successor renews it.
    assert!(tokio::time::timeout(TTL * 3 / 2, child.wait()).await.is_err());
    assert!(!waiter.is_finished(), "granted beside the successor");
    stdin.write_all(b"done\n").await.unwrap();
    assert!(
        tokio::time::timeout(PATIENCE, child.wait()).await.expect("in time").unwrap().success()
    );
    let next = tokio::time::timeout(PATIENCE, waiter).await.expect("in time").unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}
