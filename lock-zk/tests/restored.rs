//! A server that is restored from an older backup while clients are connected.

use std::time::Duration;

use lock_core::{FencingToken, LockGuard, Locks, LossReason};
use lock_lab::{Backup, Lent, ZooKeeper};
use lock_zk::client::{Acls, CreateMode};

use crate::support::*;

/// A client that holds a lock from before the backup, and one from after it.
struct Scene {
    server: Lent<ZooKeeper>,
    kept: LockGuard,
    later: LockGuard,
    _locks: Locks,
}

impl Scene {
    async fn restored(server: Lent<ZooKeeper>, ttl: Duration) -> Self {
        server.spoil();
        let locks = open(&format!("{}?ttl={}s", server.url(), ttl.as_secs())).await;
        let kept = locks.lock("kept").unwrap().acquire().await.unwrap();
        let lock = locks.lock("later").unwrap();
        lock.acquire().await.unwrap().release().await.unwrap();
        let backup: Backup = server.back_up().await.unwrap();
        for _ in 0..200 {
            soon("a cycle", lock.acquire()).await.unwrap().release().await.unwrap();
        }
        let later = lock.acquire().await.unwrap();
        eventually("both nodes are watched, and the token floor", async || {
            assert!(kept.is_valid() && later.is_valid(), "the machine is too busy for this TTL");
            server.counters().await.unwrap().get("watches") == 3
        })
        .await;
        server.restore(&backup).await.unwrap();
        Self { server, kept, later, _locks: locks }
    }

    /// Another client gets the lock of which the backup knows nothing.
    async fn next(&self) -> LockGuard {
        let other = open(&self.server.url()).await;
        soon("the lock", other.lock("later").unwrap().acquire()).await.unwrap()
    }
}

/// The server refuses the connection of a client that has seen later transactions. So the client
/// hears nothing, and its holders are told by their deadlines: a TTL after the restore at the
/// latest. The tokens have gone back.
#[tokio::test]
async fn holders_are_told_by_their_deadlines() {
    let ttl = Duration::from_secs(20);
    let scene = Scene::restored(calm_server().await, ttl).await;
    let next = scene.next().await;
    assert!(next.token() < scene.later.token(), "see docs/tokens.md");
    for guard in [&scene.kept, &scene.later] {
        soon("it is told", guard.lost()).await;
        assert!(guard.remaining().is_zero());
    }
    // What such a holder writes is refused once the floor is above all tokens of the past.
    let operator = open(&scene.server.url()).await;
    let above = FencingToken::new(scene.later.token().value());
    operator.raise_token_floor(above).await.unwrap();
    soon("the holder from before the raise is told", next.lost()).await;
    let after = soon("the lock", operator.lock("later").unwrap().acquire()).await.unwrap();
    assert!(after.token() > above);
}

/// Once the server has as many transactions again, the client comes back, with the watches on its
/// nodes: what the backup knows goes on, and the rest is told at once.
#[tokio::test]
async fn a_client_that_comes_back_is_told_at_once_of_what_is_gone() {
    let scene = Scene::restored(calm_server().await, Duration::from_secs(100)).await;
    let _next = scene.next().await;
    let (raw, open) =
        (raw(&scene.server).await, CreateMode::Persistent.with_acls(Acls::anyone_all()));
    for number in 0..2000 {
        raw.create(&format!("/more-{number}"), b"", &open).await.unwrap();
    }
    assert_eq!(soon("it is told", scene.later.lost()).await, LossReason::EntryGone);
    outlives(&scene.kept, Duration::from_secs(1)).await;
    scene.kept.release().await.unwrap();
}
