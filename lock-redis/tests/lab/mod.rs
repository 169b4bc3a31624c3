//! Helpers of the tests: a private server, clients, and foreign clients.

mod base;
#[path = "../../../tests/shared/beat.rs"]
pub mod beat;
#[path = "../../../tests/shared/bounded.rs"]
pub mod bounded;
pub mod checks;
pub mod deployments;
pub mod election;
pub mod fenced;
pub mod majority;
pub mod switch;
#[path = "../../../tests/shared/undisturbed.rs"]
pub mod undisturbed;

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, DistributedLock, Error, Kind, Lease, Locks, Request, Result, Term, Wait};
use lock_lab::{Proxy, Redis};
use lock_redis::RedisLock;

pub use self::base::*;

pub async fn server() -> Redis {
    Redis::builder().appendonly(false).start().await.unwrap()
}

/// A server with one client.
pub async fn one_driver() -> (Redis, Arc<RedisLock>) {
    let server = server().await;
    let driver = driver(&server.url()).await;
    (server, driver)
}

/// A server with two clients.
pub async fn two_drivers() -> (Redis, Arc<RedisLock>, Arc<RedisLock>) {
    let (server, one) = one_driver().await;
    let two = driver(&server.url()).await;
    (server, one, two)
}

/// A server, and a client behind a proxy.
pub async fn behind_a_proxy() -> (Redis, Proxy, Arc<RedisLock>) {
    let server = server().await;
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let far = driver(&server.url_via(&proxy)).await;
    (server, proxy, far)
}

/// A server, a client behind a proxy, and one that has no proxy.
pub async fn far_and_near() -> (Redis, Proxy, Arc<RedisLock>, Arc<RedisLock>) {
    let (server, proxy, far) = behind_a_proxy().await;
    let near = driver(&server.url()).await;
    (server, proxy, far, near)
}

/// Calls the less common scripts once, so that the server has them.
pub async fn warm(driver: &RedisLock) {
    let ttl = Duration::from_secs(10);
    let lease = acquire_as(Kind::Shared, driver, "warm", ttl).await.unwrap();
    lease.release().await.unwrap();
    let set = driver.try_all(vec![(request("warm", ttl), Attempt::new())]).await.unwrap();
    set.unwrap().remove(0).release().await.unwrap();
    let mut candidate = request("warm", ttl);
    candidate.value = Some(b"warm".to_vec().into());
    let leader = within(driver.acquire(candidate, Attempt::new())).await.unwrap();
    leader.publish(b"warmer").await.unwrap();
    leader.release().await.unwrap();
    driver.revoke(&name("warm"), Attempt::new().id()).await.unwrap();
}

/// Makes the user of docs/stores/redis.md. `more`: further rules.
pub async fn give_documented_rights(server: &Redis, more: &str) {
    make_user(server, &format!("{}{more}", documented_user())).await;
}

/// Makes a user of a name and its rules.
pub async fn make_user(server: &Redis, user: &str) {
    let line = format!("ACL SETUSER {user}");
    let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
    assert_eq!(server.command(&words).await.unwrap(), "OK");
}

/// That user and its rules.
pub fn documented_user() -> String {
    documented_user_of(" ~app:* ")
}

/// The user of docs/stores/redis.md for these keys, and its rules.
pub fn documented_user_of(keys: &str) -> String {
    let page = include_str!("../../../docs/stores/redis.md");
    let users = page.lines().filter_map(|line| line.strip_prefix("ACL SETUSER few "));
    let users: Vec<_> = users.filter(|rules| rules.contains(keys)).collect();
    assert_eq!(users.len(), 1, "{keys:?} in docs/stores/redis.md");
    format!("few {}", users[0].replace("SECRET", "secret"))
}

/// The URL for that user.
pub fn documented_url(addr: std::net::SocketAddr) -> String {
    format!("redis://few:secret@{addr}?prefix=app:")
}

pub async fn locks(url: &str) -> Locks {
    Locks::of(driver(url).await)
}

pub fn request_of(kind: Kind, lock: &str, ttl: Duration) -> Request {
    let mut request = request(lock, ttl);
    request.kind = kind;
    request
}

pub fn permits(weight: u32, limit: u32) -> Kind {
    Kind::Permit { weight, limit }
}

pub async fn acquire_as(
    kind: Kind,
    driver: &RedisLock,
    lock: &str,
    ttl: Duration,
) -> Result<Box<dyn Lease>> {
    within(driver.acquire(request_of(kind, lock, ttl), Attempt::new())).await
}

/// Acquires without lock-core, which would hide the driver's behaviour.
pub async fn acquire(driver: &RedisLock, lock: &str, ttl: Duration) -> Result<Box<dyn Lease>> {
    within(driver.acquire(request(lock, ttl), Attempt::new())).await
}

pub async fn try_acquire(driver: &RedisLock, lock: &str, ttl: Duration) -> Result<Box<dyn Lease>> {
    let mut request = request(lock, ttl);
    request.wait = Wait::Try;
    within(driver.acquire(request, Attempt::new())).await
}

pub async fn acquire_fixed(
    driver: &RedisLock,
    lock: &str,
    ttl: Duration,
) -> Result<Box<dyn Lease>> {
    acquire_fixed_as(Kind::Exclusive, driver, lock, ttl).await
}

pub async fn acquire_fixed_as(
    kind: Kind,
    driver: &RedisLock,
    lock: &str,
    ttl: Duration,
) -> Result<Box<dyn Lease>> {
    let mut request = request_of(kind, lock, ttl);
    request.term = Term::Fixed;
    within(driver.acquire(request, Attempt::new())).await
}

/// An attempt that runs in a task of its own.
pub struct Waiter {
    pub attempt: Attempt,
    pub task: tokio::task::JoinHandle<Result<Box<dyn Lease>>>,
}

impl Waiter {
    /// Starts an attempt and returns when it is in the queue.
    pub async fn queued(
        driver: &Arc<RedisLock>,
        server: &Redis,
        lock: &str,
        ttl: Duration,
    ) -> Self {
        Self::queued_as(Kind::Exclusive, driver, server, lock, ttl).await
    }

    pub async fn queued_as(
        kind: Kind,
        driver: &Arc<RedisLock>,
        server: &Redis,
        lock: &str,
        ttl: Duration,
    ) -> Self {
        let before = queue_length(server, lock).await;
        let waiter = Self::ask(driver, request_of(kind, lock, ttl));
        until(async || queue_length(server, lock).await > before).await;
        waiter
    }

    pub fn start(driver: &Arc<RedisLock>, lock: &str, ttl: Duration) -> Self {
        Self::ask(driver, request(lock, ttl))
    }

    pub fn ask(driver: &Arc<RedisLock>, request: Request) -> Self {
        let attempt = Attempt::new();
        let (driver, mine) = (driver.clone(), attempt.clone());
        let task = tokio::spawn(async move { driver.acquire(request, mine).await });
        Self { attempt, task }
    }

    pub async fn granted(self) -> Box<dyn Lease> {
        self.ended().await.unwrap()
    }

    pub async fn ended(self) -> Result<Box<dyn Lease>> {
        within(self.task).await.unwrap()
    }
}

pub async fn queue_length(server: &Redis, lock: &str) -> usize {
    let key = companion(lock, "queue");
    server.command(&[b"LLEN", &key]).await.unwrap().parse().unwrap()
}

pub fn companion(lock: &str, what: &str) -> Vec<u8> {
    [b"{", lock.as_bytes(), b"}\xFF", what.as_bytes()].concat()
}

/// Returns the keys on the server, except fences and descriptions of clients.
pub async fn left_behind(server: &Redis) -> Vec<String> {
    let keys = server.keys().await.unwrap();
    let kept = |key: &&Vec<u8>| !key.ends_with(b"\xFFfence") && !key.starts_with(b"{distlock}\xFF");
    keys.iter().filter(kept).map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

pub async fn nothing_is_left(server: &Redis) {
    until(async || left_behind(server).await.is_empty()).await;
}

/// Looks again and again, because the server does not announce changes of its state.
pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    within(async {
        // Each look costs the machine, which other tests need: the longer it takes, the fewer.
        let mut pause = Duration::from_millis(2);
        while !condition().await {
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(Duration::from_millis(40));
        }
    })
    .await;
}

/// Tries until three of five tries in a row take less than this. On a busy machine anything takes
/// long now and then; a wait that ought not to be there comes most times.
pub async fn mostly_below(limit: Duration, mut attempt: impl AsyncFnMut() -> Duration) {
    let mut taken = Vec::new();
    while taken.iter().rev().take(5).filter(|took| **took < limit).count() < 3 {
        assert!(taken.len() < 20, "seldom below {limit:?}: {taken:?}");
        taken.push(attempt().await);
    }
}

pub fn is_contended(result: &Result<Box<dyn Lease>>) -> bool {
    matches!(result, Err(Error::Contended { .. }))
}

pub fn is_unavailable<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Unavailable { .. }))
}

pub fn lost_its_place<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::PlaceLost { .. }))
}

/// Keeps all later writes from a replica.
pub async fn pause(replica: &Redis) {
    replica.command(&[b"CONFIG", b"SET", b"masterauth", b"wrong"]).await.unwrap();
    replica.command(&[b"CLIENT", b"KILL", b"TYPE", b"master"]).await.unwrap();
    until(async || {
        let info = replica.command(&[b"INFO", b"replication"]).await.unwrap();
        info.contains("master_link_status:down")
    })
    .await;
}

/// Lets a replica have the writes again.
pub async fn resume(replica: &Redis) {
    replica.command(&[b"CONFIG", b"SET", b"masterauth", b""]).await.unwrap();
    until(async || {
        let info = replica.command(&[b"INFO", b"replication"]).await.unwrap();
        info.contains("master_link_status:up")
    })
    .await;
}

/// Waits until clients of an earlier test have gone, with all that they had sent. Servers and
/// sentinels stay connected.
pub async fn nobody_is_connected(server: &Redis) {
    until(async || {
        let list = server.command(&[b"CLIENT", b"LIST"]).await.unwrap();
        let others = |line: &&str| {
            let is_server = line.contains(" flags=S") || line.contains(" flags=M");
            !is_server && !line.contains(" name=sentinel-") && !line.contains(" cmd=client")
        };
        !list.lines().any(|line| others(&line))
    })
    .await;
}
