//! Candidates and observers.

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, DistributedLock, Leader, Lease, Observed, Request, Result};
use lock_redis::RedisLock;
use tokio::sync::mpsc;

use super::{bounded::bounded, name, request, until, within};

pub fn candidate(lock: &str, value: &[u8], ttl: Duration) -> Request {
    let mut request = request(lock, ttl);
    request.value = Some(value.into());
    request
}

pub async fn campaign(
    driver: &RedisLock,
    lock: &str,
    value: &[u8],
    ttl: Duration,
) -> Box<dyn Lease> {
    acquire_request(driver, candidate(lock, value, ttl)).await
}

pub async fn acquire_request(driver: &RedisLock, request: Request) -> Box<dyn Lease> {
    within(driver.acquire(request, Attempt::new())).await.unwrap()
}

/// A candidate that waits.
pub struct Candidate {
    pub attempt: Attempt,
    pub task: tokio::task::JoinHandle<Result<Box<dyn Lease>>>,
}

impl Candidate {
    pub async fn queued(driver: &Arc<RedisLock>, lock: &str, value: &[u8], ttl: Duration) -> Self {
        let length = async || driver.inspect(&name(lock)).await.unwrap().len();
        let before = length().await;
        let (attempt, request) = (Attempt::new(), candidate(lock, value, ttl));
        let (asks, mine) = (driver.clone(), attempt.clone());
        let task = tokio::spawn(async move { asks.acquire(request, mine).await });
        until(async || length().await > before).await;
        Self { attempt, task }
    }

    pub async fn leads(self) -> Box<dyn Lease> {
        within(self.task).await.unwrap().unwrap()
    }
}

pub async fn observe(driver: &RedisLock, lock: &str) -> mpsc::Receiver<Observed> {
    within(driver.observe(&name(lock))).await.unwrap()
}

pub async fn next(changes: &mut mpsc::Receiver<Observed>) -> Option<Leader> {
    is_next(within(changes.recv()).await)
}

pub async fn next_within(
    limit: Duration,
    changes: &mut mpsc::Receiver<Observed>,
) -> Option<Leader> {
    is_next(bounded("the next change", limit, changes.recv()).await)
}

fn is_next(change: Option<Observed>) -> Option<Leader> {
    change.expect("the observer has ended").unwrap()
}

pub async fn next_value(changes: &mut mpsc::Receiver<Observed>) -> Option<String> {
    next(changes).await.map(|leader| String::from_utf8(leader.value).unwrap())
}
