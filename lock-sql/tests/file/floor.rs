//! The token floor.

use crate::{file::locks, support::floor};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_removes_what_has_expired() {
    let directory = tempfile::tempdir().unwrap();
    let locks = locks(&directory.path().join("locks.db")).await;
    floor::a_raise_removes_what_has_expired(locks).await;
}
