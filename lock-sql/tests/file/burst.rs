//! A held lock survives a burst of acquires.

use crate::{file::locks, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_lock_outlives_a_burst() {
    let _turn = support::turn().await;
    // In memory: on a disk, the test would measure a busy disk's pauses.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let locks = locks(&directory.path().join("locks.db")).await;
    support::burst::a_held_lock_outlives_a_burst(locks).await;
}
