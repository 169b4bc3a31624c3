//! A burst of acquires leaves alone what is held.

use crate::{locks, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_outlives_a_burst() {
    let directory = tempfile::tempdir().unwrap();
    let locks = locks(&directory.path().join("locks.db")).await;
    support::burst::a_held_lock_outlives_a_burst(locks).await;
}
