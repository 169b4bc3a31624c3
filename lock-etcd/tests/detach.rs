//! Locks that are left to another process: what stands in etcd for them. And the facts of a grant.

mod support;

use std::time::Duration;

use lock_core::LossReason;
use lock_etcd::client::Client;
use lock_lab::Etcd;
use support::*;

const TTL: Duration = Duration::from_secs(60);

async fn client(etcd: &Etcd) -> Client {
    Client::connect([etcd.addr().to_string()], None).await.unwrap()
}

#[tokio::test]
async fn a_lock_that_is_left_lives_by_a_lease_of_its_own_in_its_place() {
    let (etcd, mut client) = {
        let etcd = etcd().await;
        let client = client(&etcd).await;
        (etcd, client)
    };
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let (left, kept) = (a.lock("left").unwrap().ttl(TTL), a.lock("kept").unwrap().ttl(TTL));
    let (left, kept) = (left.acquire().await.unwrap(), kept.acquire().await.unwrap());
    let token = left.token().value();
    let ticket = left.detach().await.unwrap();
    let mut entry = async |name: &str| {
        let get = lock_etcd::client::GetOptions::new().with_prefix();
        let kv = client.get(format!("{name}/"), Some(get)).await.unwrap().take_kvs().remove(0);
        (kv.create_revision().unsigned_abs(), kv.lease())
    };
    let (of_left, of_kept) = (entry("left").await, entry("kept").await);
    assert_eq!(of_left.0, token, "place and token stay");
    assert_ne!(of_left.1, of_kept.1);
    // That it ends what it holds does not end what it has left.
    a.close().await.unwrap();
    assert_eq!(kept.lost().await, LossReason::Closed);
    assert_eq!(entry("left").await, of_left);
    let guard = b.adopt(&ticket).await.unwrap();
    let adopted = entry("left").await;
    assert_eq!(adopted.0, token);
    until("only the session's lease is left", || async {
        etcd.leases().await.unwrap() == [adopted.1]
    })
    .await;
    guard.release().await.unwrap();
    until_clean(&etcd).await;
}

/// The key of one that was left is not free for the next attempt of the same client.
#[tokio::test]
async fn who_left_a_lock_waits_for_it_as_everybody_else() {
    let etcd = etcd().await;
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let lock = a.lock("job").unwrap().ttl(TTL);
    let mut guard = lock.acquire().await.unwrap();
    for _ in 0..3 {
        let token = guard.token();
        let ticket = guard.detach().await.unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none());
        let waiter = tokio::spawn(lock.acquire());
        until_queued(&a, "job", 2).await;
        let adopted = b.adopt(&ticket).await.unwrap();
        assert!(!waiter.is_finished());
        // One that was adopted can be left again.
        let ticket = adopted.detach().await.unwrap();
        let adopted = a.adopt(&ticket).await.unwrap();
        assert_eq!(adopted.token(), token);
        assert!(!waiter.is_finished());
        adopted.release().await.unwrap();
        guard = soon(waiter).await.unwrap().unwrap();
        assert!(guard.token() > token);
    }
    guard.release().await.unwrap();
    until_clean(&etcd).await;
}

/// The keys of locks that are gone are used again: etcd keeps each one that was ever used in its index.
#[tokio::test]
async fn the_keys_of_locks_that_were_left_come_back() {
    let etcd = etcd().await;
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let lock = a.lock("job").unwrap().ttl(TTL);
    for _ in 0..100 {
        let ticket = lock.acquire().await.unwrap().detach().await.unwrap();
        b.adopt(&ticket).await.unwrap().release().await.unwrap();
    }
    until("a low key is used again", || async {
        let guard = lock.acquire().await.unwrap();
        let key = keys(&etcd).await.remove(0);
        guard.release().await.unwrap();
        let (_, slot) = key.rsplit_once('.').unwrap();
        u32::from_str_radix(slot, 16).unwrap() < 64
    })
    .await;
}

/// An operator deletes the key of one that was adopted: its holder is told at once.
#[tokio::test]
async fn who_has_adopted_a_lock_is_told_of_its_loss() {
    let etcd = etcd().await;
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let guard = a.lock("job").unwrap().ttl(TTL).acquire().await.unwrap();
    let adopted = b.adopt(&guard.detach().await.unwrap()).await.unwrap();
    let key = keys(&etcd).await.remove(0);
    client(&etcd).await.delete(key, None).await.unwrap();
    assert_eq!(soon(adopted.lost()).await, LossReason::EntryGone);
}

#[tokio::test]
async fn the_facts_of_a_grant_are_those_of_the_answer() {
    let etcd = etcd().await;
    let status = client(&etcd).await.status().await.unwrap();
    let header = status.header().unwrap();
    let of_server = [
        ("cluster_id", header.cluster_id()),
        ("member_id", header.member_id()),
        ("raft_term", header.raft_term()),
    ];
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let facts: Vec<_> = guard.facts().iter().collect();
    assert_eq!(facts[0], ("revision", guard.token().value()));
    assert_eq!(facts[1..], of_server);
    let set = locks.all(["a", "b"]).unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    guard.release().await.unwrap();
    let next = soon(waiter).await.unwrap().unwrap();
    // After a wait, they are those of the answer that it waits.
    assert_eq!(next.facts().get("revision"), Some(next.token().value()));
    assert_eq!(next.facts().get("zxid"), None);
    drop(set);
}
