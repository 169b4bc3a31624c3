//! The effects of a raise of the token floor.

use std::time::Duration;

use lock_core::Locks;

use super::eventually;

/// The expired row is there until it is removed.
pub async fn a_raise_removes_what_has_expired(locks: Locks) {
    let short = locks.lock("x").unwrap().ttl(Duration::from_millis(500));
    let ticket = short.acquire().await.unwrap().detach().await.unwrap();
    eventually("it is free", async || locks.inspect("x").await.unwrap().is_empty()).await;
    locks.raise_token_floor(ticket.token()).await.unwrap();
    let guard = locks.lock("x").unwrap().acquire().await.unwrap();
    assert!(guard.token() > ticket.token());
}
