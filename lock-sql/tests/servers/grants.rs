//! When a lock was granted, and tables of the version that did not record it.

use std::any::Any;

use lock_core::Locks;
use lock_sql::{
    Dialect,
    client::{Connection, MySqlConnection, PgConnection, raw_sql},
    schema,
};

use crate::{
    servers::{Database, eventually, locks, on_both, rights},
    support::grants::{self, OLD, old_entry},
};

on_both!(
    a_wait_does_not_count_as_hold,
    a_lock_left_at_once_is_dated,
    every_kind_granted_at_once_is_dated,
    tables_of_an_old_client_get_the_column,
    a_user_that_may_not_alter_locks_without_the_column,
    the_column_may_be_lost,
    adding_the_column_gives_up_at_a_long_transaction,
);

async fn two(server: &Database) -> (Locks, Locks) {
    (locks(&server.url()).await, locks(&server.url()).await)
}

async fn a_wait_does_not_count_as_hold(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::a_wait_does_not_count_as_hold(a, b).await;
}

async fn a_lock_left_at_once_is_dated(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::a_lock_left_at_once_is_dated(a, b).await;
}

async fn every_kind_granted_at_once_is_dated(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::every_kind_granted_at_once_is_dated(a, b).await;
}

/// An old client that holds a lock meanwhile goes on, and so does one that comes later.
async fn tables_of_an_old_client_get_the_column(dialect: Dialect) {
    let server = Database::start(dialect).await;
    server.sql(&schema(dialect)).await;
    server.sql(OLD).await;
    let (before, later) = ("0a".repeat(16), "0b".repeat(16));
    server.sql(&old_entry(dialect, &before)).await;
    if dialect == Dialect::MySql {
        server.sql(&schema(dialect)).await;
    }
    // They connect together: on PostgreSQL one of them adds the column.
    let url = server.url();
    let (new, _other) = tokio::join!(locks(&url), locks(&url));
    for attempt in [&before, &later] {
        if attempt == &later {
            server.sql("UPDATE distlock_v1_slots SET token = token + 1").await;
            server.sql(&old_entry(dialect, &later)).await;
        }
        let leave = "DELETE FROM distlock_v1_entries WHERE version = 0 AND granted IS NULL AND since = \
                     1700000000000000";
        grants::beside_an_old_client(new.clone(), async || drop(server.sql(leave).await)).await;
    }
}

/// The client locks without the column, until a user with the right adds it.
async fn a_user_that_may_not_alter_locks_without_the_column(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (create, grant) = rights::user(dialect);
    server.sql(create).await;
    server.sql(&schema(dialect)).await;
    server.sql(OLD).await;
    server.sql(&grant).await;
    let url = server.url_as("plain:plain");
    let (a, b) = (locks(&url).await, locks(&url).await);
    let guard = a.lock("a").unwrap().acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("a").unwrap().acquire());
    crate::servers::eventually("a waiter", async || a.inspect("a").await.unwrap().len() == 2).await;
    guard.release().await.unwrap();
    let ticket = waiter.await.unwrap().unwrap().detach().await.unwrap();
    let guard = a.adopt(&ticket).await.unwrap();
    let queue = b.inspect("a").await.unwrap();
    assert!(queue[0].holds && queue[0].holder.granted_at.is_none(), "{queue:?}");
    guard.release().await.unwrap();
    let mut reader = a.shared("a").unwrap().acquire().await.unwrap();
    assert!(reader.try_upgrade().await.unwrap(), "the only reader");
    reader.release().await.unwrap();
    let set = a.all(["a", "b"]).unwrap().try_acquire().await.unwrap().expect("a free set");
    set.release().await.unwrap();
    server.sql(&schema(dialect)).await;
    let (a, b) = (locks(&url).await, locks(&url).await);
    grants::a_wait_does_not_count_as_hold(a, b).await;
}

async fn the_column_may_be_lost(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    grants::the_column_may_be_lost(a.clone(), b.clone(), async || drop(server.sql(OLD).await))
        .await;
    server.sql(&schema(dialect)).await;
    for locks in [&a, &b] {
        grants::dated_again(locks).await;
    }
}

/// A transaction that has read the table and does not end, until it is dropped.
async fn long_transaction(server: &Database) -> Box<dyn Any> {
    let read = "BEGIN; SELECT COUNT(*) FROM distlock_v1_entries";
    match server {
        Database::MariaDb(server) => {
            let mut long = MySqlConnection::connect(&server.url()).await.unwrap();
            raw_sql(read).execute(&mut long).await.unwrap();
            Box::new(long)
        }
        Database::Postgres(server) => {
            let mut long = PgConnection::connect(&server.url()).await.unwrap();
            raw_sql(read).execute(&mut long).await.unwrap();
            Box::new(long)
        }
    }
}

/// All clients would wait behind it meanwhile. The statements must be run again later.
async fn adding_the_column_gives_up_at_a_long_transaction(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (a, b) = two(&server).await;
    server.sql(OLD).await;
    let long = long_transaction(&server).await;
    let guard = a.lock("a").unwrap().acquire().await.unwrap();
    let refused = match &server {
        Database::MariaDb(server) => server.sql(&schema(dialect)).await,
        Database::Postgres(server) => server.sql(&schema(dialect)).await,
    };
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("timeout"), "{refused}");
    assert_eq!(b.inspect("a").await.unwrap()[0].holder.granted_at, None);
    guard.release().await.unwrap();
    drop(long);
    eventually("the end of the transaction", async || match &server {
        Database::MariaDb(server) => server.sql(&schema(dialect)).await.is_ok(),
        Database::Postgres(server) => server.sql(&schema(dialect)).await.is_ok(),
    })
    .await;
    grants::dated_again(&b).await;
}

/// An `ALTER` would keep all other clients waiting behind a long transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_does_not_alter_mariadb() {
    let server = Database::start(Dialect::MySql).await;
    server.sql(&schema(Dialect::MySql)).await;
    server.sql(OLD).await;
    let long = long_transaction(&server).await;
    let alters = async || server.sql("SHOW GLOBAL STATUS LIKE 'Com_alter_table'").await;
    let before = alters().await;
    let (a, b) = two(&server).await;
    assert_eq!(alters().await, before);
    let guard = a.lock("a").unwrap().acquire().await.unwrap();
    assert_eq!(b.inspect("a").await.unwrap()[0].holder.granted_at, None);
    guard.release().await.unwrap();
    drop(long);
}
