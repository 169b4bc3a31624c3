//! Servers that are handed from test to test.

use std::{
    error::Error,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use lock_lab::{LabError, Lent, Pool, Redis};

use crate::is_open;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// A server for the pool's own rules: which one it is, and how often it was emptied.
struct Dummy {
    number: u32,
    emptied: AtomicU32,
}

/// Lends a server of a pool that has made as many as `made` says.
async fn lend(pool: &'static Pool<Dummy>, made: &AtomicU32) -> Lent<Dummy> {
    let empty = async |dummy: &Dummy| {
        dummy.emptied.fetch_add(1, Relaxed);
        Ok::<_, LabError>(())
    };
    let start = async || {
        let number = made.fetch_add(1, Relaxed);
        Ok(Dummy { number, emptied: AtomicU32::new(0) })
    };
    pool.lend(empty, start).await.unwrap()
}

/// Which one it is, and how often it was emptied.
fn facts(dummy: &Dummy) -> (u32, u32) {
    (dummy.number, dummy.emptied.load(Relaxed))
}

#[tokio::test]
async fn a_server_is_handed_on_empty_and_has_one_user_at_a_time() {
    static POOL: Pool<Dummy> = Pool::new();
    let made = AtomicU32::new(0);
    let first = lend(&POOL, &made).await;
    let second = lend(&POOL, &made).await;
    assert_eq!((facts(&first), facts(&second)), ((0, 0), (1, 0)));
    drop(first);
    let again = lend(&POOL, &made).await;
    assert_eq!((facts(&again), facts(&second)), ((0, 1), (1, 0)));
    assert_eq!(facts(&*lend(&POOL, &made).await), (2, 0));
}

#[tokio::test]
async fn a_spoiled_server_and_that_of_a_failed_test_are_not_handed_on() {
    static POOL: Pool<Dummy> = Pool::new();
    let made = AtomicU32::new(0);
    lend(&POOL, &made).await.spoil();
    let failed = lend(&POOL, &made).await;
    assert_eq!(failed.number, 1);
    let test = std::thread::spawn(move || {
        let _server = failed;
        panic!("a test fails");
    });
    assert!(test.join().is_err());
    assert_eq!(lend(&POOL, &made).await.number, 2);
    assert_eq!(lend(&POOL, &made).await.number, 2);
}

#[tokio::test]
async fn a_server_that_cannot_be_emptied_is_not_handed_on() {
    static POOL: Pool<Dummy> = Pool::new();
    let made = AtomicU32::new(0);
    drop(lend(&POOL, &made).await);
    let stuck = async |_: &Dummy| Err("stuck".into());
    let start = async || Ok(Dummy { number: 7, emptied: AtomicU32::new(0) });
    let lent: Result<Lent<Dummy>> = POOL.lend(stuck, start).await;
    assert_eq!(lent.unwrap().number, 7);
}

#[tokio::test]
async fn a_server_of_no_pool_is_dropped_with_the_loan() -> Result {
    let redis = Redis::start().await?;
    let addr = redis.addr();
    let lent = Lent::from(redis);
    assert!(is_open(lent.addr()));
    drop(lent);
    assert!(!is_open(addr));
    Ok(())
}

/// Each test has a runtime of its own.
#[test]
fn a_server_outlives_the_runtime_that_has_started_it() -> Result {
    static POOL: Pool<Redis> = Pool::new();
    let mut pids = Vec::new();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let empty = async |redis: &Redis| redis.command(&[b"FLUSHALL"]).await.map(drop);
            let redis = POOL.lend(empty, Redis::start).await?;
            assert!(redis.keys().await?.is_empty());
            redis.command(&[b"SET", b"key", b"value"]).await?;
            pids.push(redis.pid());
            Ok::<_, LabError>(())
        })?;
    }
    assert_eq!(pids[0], pids[1]);
    Ok(())
}
