//! The cost of a lock, as the server counts it.

use std::time::Duration;

use lock_core::Locks;
use lock_sql::Dialect;

use crate::servers::{Database, eventually, locks, on_both};

on_both!(an_uncontended_lock_is_two_transactions, a_free_set_is_one_transaction);

const TIMES: u64 = 50;

/// Makes a client send nothing by itself: as soon as it listens, it asks whether it still has the
/// locks that it holds. So it holds one until then.
pub async fn settled(server: &Database, locks: &Locks) {
    let lock = locks.lock("a").unwrap().ttl(Duration::from_secs(300));
    let guard = lock.acquire().await.unwrap();
    if let Database::Postgres(_) = server {
        let asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'distlock' \
                     AND state = 'idle' AND query ~ 'EXECUTE distlock_' AND query !~ 'INSERT'";
        eventually("it has asked", async || server.sql(asked).await.trim() != "0").await;
    }
    guard.release().await.unwrap();
}

async fn an_uncontended_lock_is_two_transactions(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    let lock = locks.lock("a").unwrap();
    settled(&server, &locks).await;
    let before = server.counters().await.unwrap();
    for _ in 0..TIMES {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let since = server.counters().await.unwrap().since(&before);
    let spent = |command: &str| since.get(&format!("cmd.{command}"));
    println!("{dialect:?}, {TIMES} times acquire and release: {since}");
    // Acquire: the counter, the expired entries, the entry, the queue. Release: the entry.
    assert_eq!(spent("update"), TIMES);
    assert_eq!(spent("delete"), TIMES * 2);
    assert_eq!(spent("insert") + spent("insert_select"), TIMES);
    match dialect {
        // One message each, which is a transaction: acquire, and release with its lock of the
        // counter and its push.
        Dialect::Postgres => {
            assert_eq!((spent("select"), spent("begin"), spent("commit")), (TIMES * 3, 0, 0));
        }
        // The release is a transaction of one statement.
        _ => {
            let transactions = (spent("select"), spent("begin"), spent("commit"));
            assert_eq!(transactions, (TIMES, TIMES, TIMES));
        }
    }
}

async fn a_free_set_is_one_transaction(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    settled(&server, &locks).await;
    let names: Vec<_> = (0..locks.guarantees().names_at_once).map(|n| format!("n{n}")).collect();
    let set = locks.all(&names).unwrap();
    let before = server.counters().await.unwrap();
    let held = set.try_acquire().await.unwrap().expect("a free set");
    let since = server.counters().await.unwrap().since(&before);
    let spent = |command: &str| since.get(&format!("cmd.{command}"));
    println!("{dialect:?}, a set of {}: {since}", names.len());
    // As for one lock: the counters, the expired entries, the entries, and a read of them.
    let written = (spent("update"), spent("delete"), spent("insert") + spent("insert_select"));
    assert_eq!(written, (1, 1, 1));
    match dialect {
        // The counters are locked in order, first.
        Dialect::Postgres => assert_eq!(spent("select"), 2),
        _ => assert_eq!((spent("select"), spent("begin"), spent("commit")), (1, 1, 1)),
    }
    assert_eq!(server.entries().await, names.len() as u64);
    assert!(set.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    assert_eq!(server.entries().await, 0);
}

/// Each client looks for its first waiter, up to this one: whatever waits behind it costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_reads_no_entry_behind_the_first_waiter() {
    const WAITERS: u64 = 300;
    let server = Database::start(Dialect::MySql).await;
    let (one, two) = (locks(&server.url()).await, locks(&server.url()).await);
    // So long that no renewal falls into the count.
    let lock = |locks: &Locks| locks.lock("a").unwrap().ttl(Duration::from_secs(1200));
    let held = lock(&one).acquire().await.unwrap();
    let waiters: Vec<_> = (0..WAITERS).map(|_| tokio::spawn(lock(&two).acquire())).collect();
    eventually("all wait", async || server.entries().await == WAITERS + 1).await;
    let counted = async |what: &str| {
        let shown = server.sql(&format!("SHOW GLOBAL STATUS LIKE '{what}'")).await;
        shown.split_whitespace().last().and_then(|count| count.parse::<u64>().ok()).unwrap()
    };
    let before = (counted("Com_select").await, counted("Handler_read_next").await);
    eventually("it looks", async || counted("Com_select").await >= before.0 + 40).await;
    let rows = counted("Handler_read_next").await - before.1;
    let looks = counted("Com_select").await - before.0;
    println!("{rows} rows in {looks} looks");
    assert!(rows <= looks * 10, "{rows} rows in {looks} looks");
    two.close().await.unwrap();
    for waiter in waiters {
        assert!(waiter.await.unwrap().is_err());
    }
    held.release().await.unwrap();
}
