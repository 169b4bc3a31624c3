//! Entries of other clients in the same directory: Curator's, kazoo's, and unknown ones.

use lock_core::Entry;
use lock_zk::client::EventType;
use uuid::Uuid;

use crate::support::*;

#[tokio::test]
async fn curators_holder_excludes_us_until_its_node_is_gone() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("curator"));
    let stem = format!("_c_{}-lock-", Uuid::new_v4());
    let theirs = foreign(&raw, &format!("/locks/{name}"), &stem).await;
    assert!(locks.lock(&name).unwrap().try_acquire().await.unwrap().is_none());
    let waiter = queue_up(&locks, locks.lock(&name).unwrap(), &name, 1).await;
    assert!(!waiter.is_finished());
    let queue = locks.inspect(&name).await.unwrap();
    assert_eq!(queue[0], Entry::new(None, lock_core::Holder::default()).holding());
    assert!(queue[1].attempt.is_some());
    raw.delete(&theirs, None).await.unwrap();
    soon("we hold", waiter).await.unwrap().unwrap().release().await.unwrap();
}

/// Curator sorts by the text after `lock-`, and watches the node before its own.
#[tokio::test]
async fn we_exclude_curators_waiter_until_we_release() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("curator"));
    let guard = locks.lock(&name).unwrap().acquire().await.unwrap();
    let directory = format!("/locks/{name}");
    let theirs = foreign(&raw, &directory, &format!("_c_{}-lock-", Uuid::new_v4())).await;
    let mut entries = children(&raw, &directory).await;
    entries.sort_by_key(|entry| entry.rsplit_once("lock-").unwrap().1.to_owned());
    assert!(theirs.ends_with(&entries[1]));
    let ours = format!("{directory}/{}", entries[0]);
    let (_, stat, watcher) = raw.get_and_watch_data(&ours).await.unwrap();
    assert_eq!(stat.czxid.unsigned_abs(), guard.token().value());
    guard.release().await.unwrap();
    let event = soon("the watch fires", watcher.changed()).await;
    assert_eq!(event.event_type, EventType::NodeDeleted);
    assert!(locks.lock(&name).unwrap().try_acquire().await.unwrap().is_none(), "theirs now");
}

#[tokio::test]
async fn kazoos_and_unknown_entries_count_as_exclusive() {
    let server = shared().await;
    let (locks, raw) = (open(&server.url()).await, raw(server).await);
    for stem in [format!("{}__lock__", Uuid::new_v4().simple()), "x-".to_owned()] {
        let name = fresh("kazoo");
        let theirs = foreign(&raw, &format!("/locks/{name}"), &stem).await;
        assert!(locks.lock(&name).unwrap().try_acquire().await.unwrap().is_none());
        let waiter = queue_up(&locks, locks.lock(&name).unwrap(), &name, 1).await;
        raw.delete(&theirs, None).await.unwrap();
        drop(soon("we hold", waiter).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn a_child_without_a_sequence_is_no_entry() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("child"));
    foreign(&raw, &format!("/locks/{name}/part"), "lock-").await;
    assert!(locks.lock(&name).unwrap().try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_foreign_waiter_between_two_of_ours_keeps_its_place() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("between"));
    let directory = format!("/locks/{name}");
    let guard = locks.lock(&name).unwrap().acquire().await.unwrap();
    let theirs = foreign(&raw, &directory, &format!("_c_{}-lock-", Uuid::new_v4())).await;
    let waiter = queue_up(&locks, locks.lock(&name).unwrap(), &name, 2).await;
    guard.release().await.unwrap();
    let held_by = children(&raw, &directory).await;
    assert!(held_by.len() == 2 && !waiter.is_finished(), "the foreign one holds: {held_by:?}");
    raw.delete(&theirs, None).await.unwrap();
    drop(soon("we hold", waiter).await.unwrap().unwrap());
}
