//! Queues that do not fit into one answer of etcd.

use std::time::Duration;

use lock_core::{Effect, Entry, Error};
use lock_etcd::client::{Client, GetOptions, PutOptions, Txn, TxnOp};
use uuid::Uuid;

use crate::support::*;

/// Returns the number of keys that start with `start`.
async fn count(raw: &Client, start: &str) -> i64 {
    let all = GetOptions::new().with_prefix().with_count_only();
    raw.kv_client().get(start, Some(all)).await.unwrap().count()
}

fn value(n: usize) -> String {
    format!("{n:05}").repeat(1000)
}

/// Writes candidates of another client, as its driver does.
async fn put_candidates(raw: &mut Client, numbers: std::ops::Range<usize>) {
    let lease = raw.lease_grant(600, None).await.unwrap().id();
    let leased = || Some(PutOptions::new().with_lease(lease));
    for n in numbers {
        let note = format!(r#"{{"holder":"they","since":1,"attempt":"{}"}}"#, Uuid::new_v4());
        let entry = TxnOp::put(format!("job/{lease:x}.{n:x}.v"), value(n), leased());
        let note = TxnOp::put(format!("job#{lease:x}.{n:x}.v"), note, leased());
        raw.txn(Txn::new().and_then([entry, note])).await.unwrap();
    }
}

/// With their values they exceed the 4 MB that the client accepts.
#[tokio::test]
async fn a_thousand_candidates_with_large_values() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=60s", etcd.url())).await;
    let mut raw = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let election = locks.election("job").unwrap().holder("we");
    let leading = election.campaign(value(0)).await.unwrap();
    put_candidates(&mut raw, 1..1000).await;
    let queue = locks.inspect("job").await.unwrap();
    assert_eq!(queue.len(), 1000);
    let they = |entry: &Entry| entry.holder.description.as_deref() == Some("they");
    assert!(queue[1..].iter().all(they));
    let leader = election.leader().await.unwrap().unwrap();
    assert_eq!((leader.token, leader.value), (leading.token(), value(0).into_bytes()));
    let late = locks.election("job").unwrap().wait(Duration::from_millis(100));
    match late.campaign(value(1000)).await {
        Err(Error::WaitTimeout { holder: Some(holder), position: Some(1000), .. }) => {
            assert_eq!(holder.description.as_deref(), Some("we"));
        }
        other => panic!("{other:?}"),
    }
    let mut observer = election.observe().await.unwrap();
    let observed = soon(observer.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(observed.token, leading.token());
    leading.resign().await.unwrap();
    let observed = soon(observer.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(observed.value, value(1).into_bytes());
}

/// It does not look, and then has more to read than the client takes in one message.
#[tokio::test]
async fn an_observer_that_is_far_behind_catches_up() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=60s", etcd.url())).await;
    let election = locks.election("job").unwrap();
    let mut leading = election.campaign(value(0)).await.unwrap();
    let mut observer = election.observe().await.unwrap();
    for n in 1..1200 {
        leading.proclaim(value(n)).await.unwrap();
    }
    let mut last = String::new();
    while last != value(1199) {
        let leader = soon(observer.next()).await.unwrap().unwrap().unwrap();
        let next = String::from_utf8(leader.value).unwrap();
        assert!(next > last, "an older value");
        last = next;
    }
    leading.resign().await.unwrap();
    assert!(soon(observer.next()).await.unwrap().unwrap().is_none());
}

#[tokio::test]
async fn an_acquire_whose_answer_is_too_large_says_so_and_leaves_nothing() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?ttl=60s", etcd.url())).await;
    let name = "n".repeat(500);
    let mut raw = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    // Each is listed with its key of more than 500 bytes.
    for batch in 0..100 {
        let put = |n| TxnOp::put(format!("{name}/{batch:02}{n:03}"), "", None);
        raw.txn(Txn::new().and_then((0..100).map(put).collect::<Vec<_>>())).await.unwrap();
    }
    // An exclusive attempt looks at the last entries alone.
    let error = soon(locks.shared(&name).unwrap().acquire()).await.unwrap_err();
    assert!(matches!(error, Error::Rejected { effect: Effect::Unknown, .. }), "{error}");
    until("its entry is gone", || async { count(&raw, &name).await == 10_000 }).await;
    // Reads in several parts still work.
    assert_eq!(locks.inspect(&name).await.unwrap().len(), 10_000);
    assert_eq!(locks.names("").await.unwrap().len(), 1);
}
