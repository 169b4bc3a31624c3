//! Locks that are left to another process, and their entries in etcd. Also the facts of a grant.

use std::time::Duration;

use lock_core::{Error, FencingToken, LossReason};
use lock_etcd::client::Client;
use lock_lab::Etcd;

use crate::support::*;

/// Nothing is found out by a renewal, which comes after a third of it.
const TTL: Duration = Duration::from_secs(600);

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
    // Closing ends the locks that it holds, but not the ones that it has left.
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

/// Its release removes all keys of its slot, so no other kind of entry may have that.
#[tokio::test]
async fn a_lock_that_was_left_has_its_slot_for_itself() {
    let etcd = etcd().await;
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let guard = a.lock("job").unwrap().ttl(TTL).acquire().await.unwrap();
    let ticket = guard.detach().await.unwrap();
    let left = keys(&etcd).await.remove(0);
    let reading = tokio::spawn(a.shared("job").unwrap().ttl(TTL).acquire());
    until_queued(&b, "job", 2).await;
    let reader = keys(&etcd).await.into_iter().find(|key| *key != left).unwrap();
    assert!(left.ends_with(".0") && reader.ends_with(".1.r"), "{left} {reader}");
    b.adopt(&ticket).await.unwrap().release().await.unwrap();
    let reading = soon(reading).await.unwrap().unwrap();
    assert_eq!(keys(&etcd).await, [reader]);
    reading.release().await.unwrap();
}

/// The keys of locks that are gone are used again: etcd keeps each key that was ever used in its
/// index.
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
    // After a wait, the facts are those of the answer that began the wait.
    assert_eq!(next.facts().get("revision"), Some(next.token().value()));
    assert_eq!(next.facts().get("zxid"), None);
    drop(set);
}

fn is_lost<T: std::fmt::Debug>(result: Result<T, Error>, why: LossReason) -> bool {
    match result {
        Err(Error::Lost { reason, .. }) => reason == why,
        other => panic!("{other:?}"),
    }
}

/// Locks older than the record keep their owners: the second step finds and ends them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_below_the_floor_is_not_left_or_adopted() {
    let etcd = etcd().await;
    let (a, b, operator) =
        (locks(&etcd.url()).await, locks(&etcd.url()).await, locks(&etcd.url()).await);
    let take = async |name: &str| a.lock(name).unwrap().ttl(TTL).acquire().await.unwrap();
    let ticket = take("left").await.detach().await.unwrap();
    let (kept, other) = (take("kept").await, take("other").await);
    let floor = operator.token_floor().await.unwrap().newest;
    let raised = operator.driver().raise_token_floor(floor).await.unwrap();
    let below = operator.driver().below_token_floor(raised).await.unwrap();
    assert_eq!(below.len(), 3);
    // Neither client knows of the raise.
    assert!(is_lost(b.adopt(&ticket).await, LossReason::TicketOver));
    assert!(is_lost(kept.detach().await, LossReason::EntryGone));
    until("what could not be left is removed", || async {
        operator.inspect("kept").await.unwrap().is_empty()
    })
    .await;
    for (name, attempt) in below {
        let revoked = operator.revoke(&name, attempt).await.unwrap();
        assert_eq!(revoked, name.as_str() != "kept");
    }
    assert_eq!(soon(other.lost()).await, LossReason::EntryGone);
    until_clean(&etcd).await;
    // Both clients know of it now.
    assert!(is_lost(b.adopt(&ticket).await, LossReason::TicketOver));
    let ticket = take("left").await.detach().await.unwrap();
    let adopted = b.adopt(&ticket).await.unwrap();
    assert!(adopted.token() > floor && adopted.token() == ticket.token());
    adopted.release().await.unwrap();
}

/// The adopting process may be a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adopter_that_does_not_know_the_floor_learns_it() {
    let etcd = etcd().await;
    let (a, b) = (locks(&etcd.url()).await, locks(&etcd.url()).await);
    let newest = a.token_floor().await.unwrap().newest;
    let floor = FencingToken::new(newest.value() + 1000);
    a.raise_token_floor(floor).await.unwrap();
    let guard = a.lock("x").unwrap().ttl(TTL).acquire().await.unwrap();
    let adopted = b.adopt(&guard.detach().await.unwrap()).await.unwrap();
    assert!(adopted.token() > floor);
    assert_eq!(a.inspect("x").await.unwrap()[0].holder.token, Some(adopted.token()));
    // And `b` leaves it again with the floor that it has learned.
    let adopted = a.adopt(&adopted.detach().await.unwrap()).await.unwrap();
    adopted.release().await.unwrap();
}
