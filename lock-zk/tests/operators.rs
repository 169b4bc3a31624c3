//! Names in use, and revoked locks.

use lock_core::{Error, LockName, LossReason};
use lock_zk::client::{Acls, CreateMode};
use uuid::Uuid;

use crate::support::*;

#[tokio::test]
async fn native_names_are_found_at_any_depth_and_foreign_ones_too() {
    let server = shared().await;
    let prefix = format!("/app-{}", Uuid::new_v4().simple());
    let url = format!("{}?layout=native&prefix={prefix}", server.url());
    let (locks, raw) = (open(&url).await, raw(server).await);
    let mut guards = Vec::new();
    for name in ["orders", "orders/eu/1", "a0000000001", "other"] {
        guards.push(locks.lock(name).unwrap().acquire().await.unwrap());
    }
    foreign(&raw, &format!("{prefix}/orders/us"), &format!("_c_{}-lock-", Uuid::new_v4())).await;
    foreign(&raw, &format!("{prefix}/ordinary"), "member").await;
    let empty = CreateMode::Persistent.with_acls(Acls::anyone_all());
    raw.mkdir(&format!("{prefix}/orders/none/below"), &empty).await.unwrap();
    for (asked, expected) in [
        ("", &["a0000000001", "orders", "orders/eu/1", "orders/us", "ordinary", "other"][..]),
        ("or", &["orders", "orders/eu/1", "orders/us", "ordinary"]),
        ("orders/", &["orders/eu/1", "orders/us"]),
        ("orders/eu/", &["orders/eu/1"]),
        ("nobody", &[]),
    ] {
        let names = locks.names(asked).await.unwrap();
        let names: Vec<_> = names.iter().map(LockName::as_str).collect();
        assert_eq!(names, expected, "asked for {asked:?}");
    }
}

#[tokio::test]
async fn at_the_root_zookeepers_own_directory_is_no_lock() {
    let server = server().await;
    let locks = open(&format!("{}?prefix=/", server.url())).await;
    assert!(locks.names("").await.unwrap().is_empty());
    let guard = locks.lock("a/b").unwrap().acquire().await.unwrap();
    assert_eq!(locks.names("").await.unwrap(), [LockName::new("a/b").unwrap()]);
    drop(guard);
}

#[tokio::test]
async fn every_kind_can_be_revoked_and_leaves_nothing() {
    let server = server().await;
    let (locks, operator) = (open(&server.url()).await, open(&server.url()).await);
    let name = LockName::new("revoked").unwrap();
    let upgraded = async || {
        let mut guard = locks.shared(&name).unwrap().acquire().await.unwrap();
        assert!(guard.try_upgrade().await.unwrap());
        guard
    };
    for kind in 0..4 {
        let guard = match kind {
            0 => locks.lock(&name).unwrap().acquire().await.unwrap(),
            1 => locks.shared(&name).unwrap().acquire().await.unwrap(),
            2 => locks.semaphore(&name, 3).unwrap().acquire_many(2).await.unwrap(),
            _ => upgraded().await,
        };
        let waiting = queue_up(&operator, locks.lock(&name).unwrap(), "revoked", 1).await;
        let queue = operator.inspect(&name).await.unwrap();
        for entry in &queue {
            assert!(operator.revoke(&name, entry.attempt.unwrap()).await.unwrap());
            assert!(!operator.revoke(&name, entry.attempt.unwrap()).await.unwrap());
        }
        assert_eq!(soon("the holder is told", guard.lost()).await, LossReason::EntryGone);
        // It may have been granted in between.
        match soon("the waiter is told", waiting).await.unwrap() {
            Ok(next) => assert_eq!(soon("it is told", next.lost()).await, LossReason::EntryGone),
            Err(error) => assert!(lost_its_place(&error), "{error}"),
        }
        assert!(matches!(guard.release().await, Err(Error::Lost { .. })));
    }
    eventually("the client forgets them", || async {
        format!("{:?}", locks.driver()).contains("attempts: 0")
    })
    .await;
    assert_eq!(server.counters().await.unwrap().get("ephemerals"), 0);
    assert!(!operator.revoke(&name, Uuid::new_v4()).await.unwrap());
}

/// Its own node is watched, or looked for, before the end of the entry before it can admit it.
#[tokio::test]
async fn a_waiter_whose_node_goes_in_the_first_moment_is_never_granted() {
    let server = shared().await;
    let (first, second, raw) =
        (open(&server.url()).await, open(&server.url()).await, raw(server).await);
    for round in 0..40 {
        let name = fresh("moment");
        let directory = format!("/locks/{name}");
        let guard = first.lock(&name).unwrap().acquire().await.unwrap();
        // Behind one entry the own node is watched at once, behind two it is not.
        let mut between = None;
        if round % 2 == 1 {
            let stem = format!("_c_{}-lock-", Uuid::new_v4());
            between = Some(foreign(&raw, &directory, &stem).await);
        }
        let before = children(&raw, &directory).await;
        let waiting = tokio::spawn(second.lock(&name).unwrap().acquire());
        let own = loop {
            let mut queue = children(&raw, &directory).await;
            queue.retain(|child| !before.contains(child));
            if let Some(own) = queue.pop() {
                break own;
            }
        };
        raw.delete(&format!("{directory}/{own}"), None).await.unwrap();
        if let Some(between) = between {
            raw.delete(&between, None).await.unwrap();
        }
        guard.release().await.unwrap();
        let error = soon("the waiter is told", waiting).await.unwrap().expect_err("no place");
        assert!(lost_its_place(&error), "round {round}: {error}");
    }
}

/// The end of an entry of the same client admits the next one without a request only if the client
/// itself passed the lock on.
#[tokio::test]
async fn a_waiter_is_not_granted_when_all_nodes_are_deleted_at_once() {
    let server = server().await;
    let (locks, raw) = (open(&server.url()).await, raw(&server).await);
    for round in 0..5 {
        let name = fresh("all");
        let directory = format!("/locks/{name}");
        // The waiters of later rounds list nothing: there were entries enough in the directory.
        for _ in 0..4 * round {
            locks.lock(&name).unwrap().acquire().await.unwrap().release().await.unwrap();
        }
        let guard = locks.lock(&name).unwrap().acquire().await.unwrap();
        eventually("the holder's node is watched", || async {
            server.counters().await.unwrap().get("watches") >= 2
        })
        .await;
        let mut paths = children(&raw, &directory).await;
        let waiting = tokio::spawn(locks.lock(&name).unwrap().acquire());
        while paths.len() < 2 {
            let children = children(&raw, &directory).await;
            let own = children.into_iter().find(|child| *child != paths[0]);
            // The waiter's node goes first: else the holder's end may admit the waiter rightly.
            paths.splice(0..0, own);
        }
        let [first, second] = [0, 1].map(|index| format!("{directory}/{}", paths[index]));
        let (one, two) = tokio::join!(raw.delete(&first, None), raw.delete(&second, None));
        one.and(two).unwrap();
        assert_eq!(soon("the holder is told", guard.lost()).await, LossReason::EntryGone);
        let error = soon("the waiter is told", waiting).await.unwrap().expect_err("no place");
        assert!(lost_its_place(&error), "round {round}: {error}");
    }
}

/// Numbers begin anew with the directory, and the waiter has the one after the former holder's.
#[tokio::test]
async fn a_waiter_in_a_new_directory_does_not_follow_a_holder_of_the_former_one() {
    let server = shared().await;
    let (first, second, raw) =
        (open(&server.url()).await, open(&server.url()).await, raw(server).await);
    for round in 0..10 {
        let name = fresh("anew");
        let directory = format!("/locks/{name}");
        let former = first.lock(&name).unwrap().acquire().await.unwrap();
        let node = children(&raw, &directory).await.remove(0);
        raw.delete(&format!("{directory}/{node}"), None).await.unwrap();
        raw.delete(&directory, None).await.unwrap();
        let holder = second.lock(&name).unwrap().acquire().await.unwrap();
        let waiter = queue_up(&first, first.lock(&name).unwrap(), &name, 1).await;
        // It may not have been told yet that its node is gone.
        let _ = former.release().await;
        assert_eq!(first.inspect(&name).await.unwrap().len(), 2);
        assert!(!waiter.is_finished(), "round {round}: beside {holder:?}");
        holder.release().await.unwrap();
        soon("its turn", waiter).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_upgraded_lock_is_revoked_by_its_first_attempt() {
    let server = shared().await;
    let (locks, operator) = (open(&server.url()).await, open(&server.url()).await);
    let name = fresh("seen");
    let mut guard = locks.shared(&name).unwrap().acquire().await.unwrap();
    let seen = async || operator.inspect(&name).await.unwrap()[0].attempt.unwrap();
    let attempt = seen().await;
    for _ in 0..2 {
        assert!(guard.try_upgrade().await.unwrap());
        assert_eq!(seen().await, attempt);
        guard.downgrade().await.unwrap();
        assert_eq!(seen().await, attempt);
    }
    assert!(operator.revoke(&name, attempt).await.unwrap());
    assert!(!operator.revoke(&name, attempt).await.unwrap());
    assert_eq!(soon("the holder is told", guard.lost()).await, LossReason::EntryGone);
    assert!(operator.inspect(&name).await.unwrap().is_empty());
}
