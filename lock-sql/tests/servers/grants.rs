//! When a lock was granted.

use lock_core::Locks;
use lock_sql::Dialect;

use crate::{
    servers::{Database, locks, on_both},
    support::grants,
};

on_both!(
    a_wait_does_not_count_as_hold,
    a_lock_left_at_once_is_dated,
    every_kind_granted_at_once_is_dated,
    a_fixed_term_that_was_waited_for_is_dated,
);

async fn two(server: &Database) -> (Locks, Locks) {
    (locks(&server.url()).await, locks(&server.url()).await)
}

async fn a_wait_does_not_count_as_hold(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::a_wait_does_not_count_as_hold(a, b).await;
}

async fn a_lock_left_at_once_is_dated(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::a_lock_left_at_once_is_dated(a, b).await;
}

async fn every_kind_granted_at_once_is_dated(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::every_kind_granted_at_once_is_dated(a, b).await;
}

async fn a_fixed_term_that_was_waited_for_is_dated(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::a_fixed_term_that_was_waited_for_is_dated(a, b).await;
}
