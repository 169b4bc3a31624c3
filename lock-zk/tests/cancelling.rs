//! Callers that leave at any moment.

use std::time::Duration;

use lock_core::{Kind, Locks};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_at_a_random_moment_leaves_nothing() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..lock_lab::size(1000, 3_000) {
        let locks = locks.clone();
        tasks.spawn(async move {
            // From "before a request was sent" to "after the grant".
            let patience = Duration::from_micros(caller * 7919 % 20_000);
            let _ = tokio::time::timeout(patience, come_and_go(&locks, caller)).await;
        });
        while tasks.len() > 50 {
            tasks.join_next().await.unwrap().unwrap();
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for name in 0..7 {
        let lock = locks.lock(format!("name{name}")).unwrap();
        soon("the name is free again", lock.acquire()).await.unwrap().release().await.unwrap();
    }
    eventually("nothing remains on the server", || async {
        let counters = server.counters().await.unwrap();
        // A client watches the token floor.
        counters.get("ephemerals") == 0 && counters.get("watches") == 1
    })
    .await;
    eventually("nothing remains in the client", || async {
        format!("{:?}", locks.driver()).contains("attempts: 0")
    })
    .await;
}

/// Takes a lock of any kind, or a set. Some give it back, others drop it.
async fn come_and_go(locks: &Locks, caller: u64) {
    let [name, next] = [0, 1].map(|n| format!("name{}", (caller + n) % 7));
    let mut guard = match caller / 7 % 6 {
        0 => return drop(locks.all([&name, &next]).unwrap().try_acquire().await.unwrap()),
        1 => return drop(locks.all([&name, &next]).unwrap().acquire().await.unwrap()),
        2 => locks.shared(&name).unwrap().acquire().await.unwrap(),
        3 => locks.semaphore(&name, 3).unwrap().acquire_many(2).await.unwrap(),
        _ => locks.lock(&name).unwrap().acquire().await.unwrap(),
    };
    match guard.kind() {
        Kind::Exclusive if caller.is_multiple_of(2) => guard.downgrade().await.unwrap(),
        Kind::Shared => drop(guard.try_upgrade().await.unwrap()),
        _ => {}
    }
    if caller.is_multiple_of(3) {
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_wait_limit_at_any_moment_neither_hangs_nor_leaks() {
    let server = server().await;
    let (here, there) = (open(&server.url()).await, open(&server.url()).await);
    let guard = here.lock("limit").unwrap().acquire().await.unwrap();
    for micros in (0..4_000).step_by(200) {
        let lock = there.lock("limit").unwrap().wait(Duration::from_micros(micros));
        soon("the limit", lock.acquire()).await.unwrap_err();
    }
    guard.release().await.unwrap();
    eventually("nothing remains on the server", || async {
        let counters = server.counters().await.unwrap();
        // A client watches the token floor.
        counters.get("ephemerals") == 0 && counters.get("watches") == 2
    })
    .await;
}

/// The server deletes a directory only after it has had an entry.
#[tokio::test]
async fn a_caller_that_leaves_early_leaves_no_directory() {
    let server = calm_server().await;
    let (proxy, raw) = (proxy(&server).await, raw(&server).await);
    let open = async |more: &str| open(&format!("{}{CALM}{more}", server.url_via(&proxy))).await;
    let (escaped, native) = (open("").await, open("&layout=native&prefix=/native").await);
    for (locks, name, directory) in [
        (&escaped, "a", "/locks/a"),
        (&native, "a", "/native/a"),
        (&native, "deep/er", "/native/deep"),
    ] {
        // Between the requests of an acquire there is time to leave.
        proxy.delay(Duration::from_millis(500));
        let acquire = tokio::spawn(locks.lock(name).unwrap().acquire());
        let exists = async || raw.check_stat(directory).await.unwrap().is_some();
        eventually("the directory is made", exists).await;
        acquire.abort();
        proxy.delay(Duration::ZERO);
        eventually("it is deleted", async || !exists().await).await;
    }
}
