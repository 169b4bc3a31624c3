//! The token floor: what a raise ends, what counts from it, and a record that is broken.

mod lab;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use lab::{election::*, *};
use lock_core::{
    DistributedLock, Error, FencingToken, Kind, LockGuard, Locks, LossReason, wall_clock,
};
use lock_lab::{Redis, Shift};
use lock_redis::RedisLock;

const TTL: Duration = Duration::from_secs(15);

/// Above everything that the store may have handed out.
async fn above_all(driver: &RedisLock) -> FencingToken {
    FencingToken::new(driver.token_floor().await.unwrap().newest.value() + 1_000_000)
}

async fn hold(locks: &Locks) -> LockGuard {
    within(locks.lock("orders").unwrap().ttl(TTL).acquire()).await.unwrap()
}

/// An eviction may have taken its token.
#[tokio::test]
async fn a_holder_whose_token_is_lost_is_ended_by_a_raise() {
    let (server, driver) = one_driver().await;
    let locks = Locks::new(driver.clone());
    let guard = hold(&locks).await;
    server.command(&[b"DEL", &companion("orders", "fence")]).await.unwrap();
    let floor = above_all(&driver).await;
    within(locks.raise_token_floor(floor)).await.unwrap();
    assert_eq!(within(guard.lost()).await, LossReason::EntryGone);
    assert!(hold(&locks).await.token() > floor);
}
