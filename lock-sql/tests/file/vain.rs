//! Waits in vain.

use crate::{locks, support};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_in_vain_ends_as_one() {
    let _turn = support::turn().await;
    let directory = tempfile::tempdir().unwrap();
    let locks = locks(&directory.path().join("locks.db")).await;
    support::vain::a_wait_in_vain_ends_as_one(locks).await;
}
