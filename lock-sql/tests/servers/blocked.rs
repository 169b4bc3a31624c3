//! Rows and tables that another program has locked.

use std::time::Duration;

use lock_core::{LockGuard, Locks};
use lock_sql::{
    Dialect,
    client::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, raw_sql},
};

use crate::{
    servers::{Database, locks, on_both},
    support,
};

on_both!(a_row_that_is_locked_ends_no_other_lock);

const TTL: Duration = Duration::from_secs(12);
/// More than one request renews.
const LOCKS: usize = 600;

async fn hold(locks: &Locks, count: usize) -> Vec<LockGuard> {
    let mut held = Vec::new();
    for n in 0..count {
        let lock = locks.lock(format!("{n}")).unwrap().ttl(TTL);
        held.push(lock.try_acquire().await.unwrap().expect("a free lock"));
    }
    held
}

async fn a_row_that_is_locked_ends_no_other_lock(dialect: Dialect) {
    let _turn = support::turn().await;
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    let mut held = hold(&locks, LOCKS).await;
    let victim = held.swap_remove(0);
    let lock = format!(
        "BEGIN; SELECT * FROM distlock_v1_entries WHERE token = {} AND name = {} FOR UPDATE",
        victim.token(),
        if dialect == Dialect::Postgres { "'0'::bytea" } else { "'0'" }
    );
    let lock = raw_sql(AssertSqlSafe(lock));
    match dialect {
        Dialect::Postgres => {
            let mut other = PgConnection::connect(&server.url()).await.unwrap();
            lock.execute(&mut other).await.unwrap();
            outlive(&held, &victim).await;
            other.close().await.unwrap();
        }
        _ => {
            let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
            lock.execute(&mut other).await.unwrap();
            outlive(&held, &victim).await;
            other.close().await.unwrap();
        }
    }
    for guard in held {
        guard.release().await.unwrap();
    }
}

async fn outlive(held: &[LockGuard], victim: &LockGuard) {
    // Its row takes no renewal.
    victim.lost().await;
    tokio::time::sleep(TTL / 2).await;
    let lost = held.iter().filter(|guard| !guard.is_valid()).count();
    assert_eq!(lost, 0, "of {}", held.len());
}

/// As `mysqldump` does by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_outlive_a_dump_that_locks_the_tables() {
    let _turn = support::turn().await;
    let server = Database::start(Dialect::MySql).await;
    let locks = locks(&server.url()).await;
    let held = hold(&locks, 3).await;
    let mut dump = MySqlConnection::connect(&server.url()).await.unwrap();
    let tables = ["slots", "entries"].map(|table| format!("distlock_v1_{table} READ"));
    let lock = AssertSqlSafe(format!("LOCK TABLES {}", tables.join(", ")));
    raw_sql(lock).execute(&mut dump).await.unwrap();
    tokio::time::sleep(TTL / 2).await;
    raw_sql("UNLOCK TABLES").execute(&mut dump).await.unwrap();
    tokio::time::sleep(TTL).await;
    for guard in held {
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}
