//! The sizes of the futures that are moved once or twice per acquire: a large one is copied each
//! time, and many of them leave the processor's caches.
#![cfg(any(
    feature = "sqlite",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use distlock::{LockName, Locks};
use lock_core::{Attempt, Request};

use crate::support::{Store, connect};

/// In bytes.
const MOST: usize = 3_072;

async fn small_futures(store: &str) {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    of_the_driver(&locks).await;
    of_the_callers(&locks).await;
}

async fn of_the_driver(locks: &Locks) {
    let request = Request::new(LockName::new("a").unwrap(), locks.guarantees().default_ttl);
    let acquire = locks.driver().acquire(request, Attempt::new());
    let mut sizes = vec![("acquire", size_of_val(&*acquire))];
    let lease = acquire.await.unwrap();
    sizes.push(("renew", size_of_val(&*lease.renew())));
    sizes.push(("release", size_of_val(&*lease.release())));
    lease.release().await.unwrap();
    println!("{sizes:?}");
    assert!(sizes.iter().all(|(_, size)| *size <= MOST), "{sizes:?}");
}

async fn of_the_callers(locks: &Locks) {
    let lock = locks.lock("a").unwrap();
    let run = lock.run(async |_| ());
    let sizes = [("acquire", size_of_val(&lock.acquire())), ("run", size_of_val(&run))];
    println!("{sizes:?}");
    assert!(sizes.iter().all(|(_, size)| *size <= MOST), "{sizes:?}");
}

on_every_store!(small_futures);

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_futures_of_redlock() {
    let start = || async { lock_lab::Redis::start().await.unwrap() };
    let servers = [start().await, start().await, start().await];
    let hosts = servers.each_ref().map(|server| server.addr().to_string());
    let locks = connect(&format!("redlock://{}?max_ttl=1s", hosts.join(","))).await;
    let is_old_enough = async || locks.lock("a").unwrap().try_acquire().await.is_ok();
    crate::support::eventually("the servers' votes count", is_old_enough).await;
    of_the_driver(&locks).await;
}
