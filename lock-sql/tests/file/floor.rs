//! The token floor.

use lock_core::Locks;

use crate::{file::locks, support, support::floor};

async fn with_clients(check: impl AsyncFnOnce([Locks; 3])) {
    let _turn = support::turn().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    check([locks(&path).await, locks(&path).await, locks(&path).await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_ends_a_lock_that_goes_from_hand_to_hand() {
    with_clients(async |[one, other, operator]| {
        floor::a_raise_ends_a_lock_that_goes_from_hand_to_hand([one, other], operator).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_at_or_below_the_floor_is_over() {
    with_clients(async |[one, other, _]| {
        floor::a_ticket_at_or_below_the_floor_is_over([one, other]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_removes_what_has_expired() {
    with_clients(async |[one, ..]| floor::a_raise_removes_what_has_expired(one).await).await;
}
