//! What a lock costs, as the server counts it.

use lock_sql::Dialect;

use crate::{Database, locks, on_both};

on_both!(an_uncontended_lock_is_two_transactions);

const TIMES: u64 = 50;

async fn an_uncontended_lock_is_two_transactions(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    let lock = locks.lock("a").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    let before = server.counters().await.unwrap();
    for _ in 0..TIMES {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let since = server.counters().await.unwrap().since(&before);
    let spent = |command: &str| since.get(&format!("cmd.{command}"));
    println!("{dialect:?}, {TIMES} times acquire and release: {since}");
    // Acquire: the counter, the dead, the entry, the queue. Release: the entry.
    assert_eq!(spent("update"), TIMES);
    assert_eq!(spent("delete"), TIMES * 2);
    assert_eq!(spent("insert") + spent("insert_select"), TIMES);
    match dialect {
        // One message each, which is a transaction: acquire, and release with its look at the counter
        // and its push.
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
