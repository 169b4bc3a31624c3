//! A closed client leaves nothing behind.

use std::{future::poll_fn, task::Poll, time::Duration};

use lock_core::Error;
use lock_sql::{
    Dialect,
    client::{Connection, PgConnection, raw_sql},
};

use crate::servers::{Database, connections::clients, eventually, locks, on_both};

on_both!(a_closed_client_leaves_nothing);

async fn a_closed_client_leaves_nothing(dialect: Dialect) {
    let server = Database::start(dialect).await;
    for _ in 0..20 {
        let locks = locks(&server.url()).await;
        let work =
            (0..8).map(|n| tokio::spawn(locks.lock(format!("{}", n % 4)).unwrap().acquire()));
        let work: Vec<_> = work.collect();
        tokio::task::yield_now().await;
        locks.close().await.unwrap();
        assert_eq!(server.entries().await, 0, "a closed client has left an entry");
        for attempt in work {
            drop(attempt.await.unwrap());
        }
        assert_eq!(server.entries().await, 0, "a closed client has entered a queue");
    }
}

/// MariaDB complains in its log of connections that are cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_says_goodbye() {
    let server = Database::start(Dialect::MySql).await;
    let aborted = "SELECT variable_value FROM information_schema.global_status \
                   WHERE variable_name = 'ABORTED_CLIENTS'";
    let before = server.sql(aborted).await;
    let locks = locks(&server.url()).await;
    let work: Vec<_> =
        (0..8).map(|n| tokio::spawn(locks.lock(format!("{n}")).unwrap().acquire())).collect();
    for attempt in work {
        attempt.await.unwrap().unwrap().release().await.unwrap();
    }
    locks.close().await.unwrap();
    let others = "SELECT count(*) FROM information_schema.processlist \
                  WHERE id <> connection_id() AND user <> 'system user'";
    eventually("all have left", async || server.sql(others).await.trim() == "0").await;
    assert_eq!(server.sql(aborted).await, before, "connections that were cut off");
}

/// `close` waits until the database has answered, so that nothing is entered afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_waits_for_a_request_under_way() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    let mut other = PgConnection::connect(&server.url()).await.unwrap();
    let lock = "BEGIN; SELECT * FROM distlock_v1_slots FOR UPDATE";
    raw_sql(lock).execute(&mut other).await.unwrap();
    let attempt = tokio::spawn(locks.lock("a").unwrap().acquire());
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    eventually("a request is under way", async || server.sql(waits).await.trim() == "1").await;
    let mut closing = Box::pin(locks.close());
    let waits = poll_fn(|cx| Poll::Ready(closing.as_mut().poll(cx).is_pending()));
    assert!(waits.await, "it has not waited");
    raw_sql("COMMIT").execute(&mut other).await.unwrap();
    closing.await.unwrap();
    assert!(matches!(attempt.await.unwrap(), Err(Error::Closed { .. })));
    assert_eq!(server.entries().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_does_not_listen() {
    let server = Database::start(Dialect::Postgres).await;
    let locks = locks(&server.url()).await;
    locks.close().await.unwrap();
    let refused = locks.election("boss").unwrap().leader().await.unwrap_err();
    assert!(refused.is_closed(), "{refused}");
    // One that listened would come within milliseconds.
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(clients(&server).await, 0);
    }
}
