//! When a lock was granted.

use crate::{file::locks, support::grants};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_does_not_count_as_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::a_wait_does_not_count_as_hold(locks(&path).await, locks(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_left_at_once_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::a_lock_left_at_once_is_dated(locks(&path).await, locks(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_granted_at_once_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    grants::every_kind_granted_at_once_is_dated(locks(&path).await, locks(&path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_term_that_was_waited_for_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let (a, b) = (locks(&path).await, locks(&path).await);
    grants::a_fixed_term_that_was_waited_for_is_dated(a, b).await;
}
