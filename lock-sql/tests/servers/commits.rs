//! The program's own transactions, which are committed only while a lock is held.

use std::time::Duration;

use lock_core::{Error, Locks, LossReason};
use lock_sql::{Dialect, SqlLease, schema};

use crate::{
    servers::{Database, eventually, locks, on_both},
    support::{contend::acquire, program::Program},
};

on_both!(
    a_commit_is_made_only_while_the_lock_is_held,
    each_kind_of_holder_commits,
    an_open_transaction_outlives_renewals_and_no_steal_at_each_level,
    a_transaction_of_other_tables_is_refused,
    a_revoke_waits_for_the_commit_and_a_commit_for_the_revoke
);

const TTL: Duration = Duration::from_secs(3);

/// A server with the program's table, and two clients of its locks.
async fn start(dialect: Dialect) -> (Database, Locks, Locks) {
    let server = Database::start(dialect).await;
    server.sql("CREATE TABLE numbers (n bigint)").await;
    let (own, operator) = (locks(&server.url()).await, locks(&server.url()).await);
    (server, own, operator)
}

async fn numbers(server: &Database) -> Vec<i64> {
    let numbers = server.sql("SELECT n FROM numbers ORDER BY n").await;
    numbers.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

async fn revoke(operator: &Locks, name: &str) {
    let attempt = operator.inspect(name).await.unwrap()[0].attempt.unwrap();
    assert!(operator.revoke(name, attempt).await.unwrap());
}

async fn a_commit_is_made_only_while_the_lock_is_held(dialect: Dialect) {
    let (server, own, operator) = start(dialect).await;
    let program = Program::connect(&server.url(), 1).await;
    let guard = acquire(&own, "a").await;
    program.insert(1, &guard, async {}).await.unwrap();
    program.insert(2, &guard, async { guard.renew().await.unwrap() }).await.unwrap();
    let lost = program.insert(3, &guard, revoke(&operator, "a")).await.unwrap_err();
    let is_gone = matches!(lost, Error::Lost { reason: LossReason::EntryGone, .. });
    assert!(is_gone, "{lost:?}");
    let next = acquire(&operator, "a").await;
    let late = program.insert(4, &guard, async {}).await.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    program.insert(5, &next, async {}).await.unwrap();
    next.release().await.unwrap();

    let guard = acquire(&own, "a").await;
    let closed = program.insert(6, &guard, async { own.close().await.unwrap() }).await;
    assert!(closed.as_ref().is_err_and(Error::is_lost), "{closed:?}");
    assert_eq!(numbers(&server).await, [1, 2, 5]);
}

async fn each_kind_of_holder_commits(dialect: Dialect) {
    let (server, own, operator) = start(dialect).await;
    let program = Program::connect(&server.url(), 1).await;
    let other = operator.shared("a").unwrap().acquire().await.unwrap();
    let mut reader = own.shared("a").unwrap().acquire().await.unwrap();
    program.insert(1, &reader, async {}).await.unwrap();
    other.release().await.unwrap();
    assert!(reader.try_upgrade().await.unwrap());
    program.insert(2, &reader, async {}).await.unwrap();
    let former = reader.held();
    let ticket = reader.detach().await.unwrap();
    let late = program.insert(3, &former, async {}).await.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    // The same token, and another holder.
    let adopted = operator.adopt(&ticket).await.unwrap();
    let late = program.insert(4, &former, async {}).await.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    program.insert(5, &adopted, async {}).await.unwrap();
    assert_eq!(numbers(&server).await, [1, 2, 5]);
}

async fn an_open_transaction_outlives_renewals_and_no_steal_at_each_level(dialect: Dialect) {
    let (server, own, operator) = start(dialect).await;
    let set = match dialect {
        Dialect::Postgres => "SET SESSION CHARACTERISTICS AS TRANSACTION",
        _ => "SET SESSION TRANSACTION",
    };
    let play = async |level: &str| {
        let program = Program::connect(&server.url(), 1).await;
        program.run(&format!("{set} ISOLATION LEVEL {level}")).await;
        let guard = own.lock(level).unwrap().ttl(TTL).acquire().await.unwrap();
        // A snapshot has an expiry that is over by then.
        let long = tokio::time::sleep(TTL + TTL / 4);
        let kept = program.insert(1, &guard, long).await;
        kept.unwrap_or_else(|error| panic!("{level}: {error}"));
        let steal = async {
            revoke(&operator, level).await;
            acquire(&operator, level).await.release().await.unwrap();
        };
        let late = program.insert(2, &guard, steal).await.unwrap_err();
        assert!(late.is_lost(), "{level}: {late:?}");
    };
    tokio::join!(play("READ COMMITTED"), play("REPEATABLE READ"), play("SERIALIZABLE"));
    assert_eq!(numbers(&server).await, [1, 1, 1]);
}

/// A program without the locks' tables, and then with tables of other locks.
async fn a_transaction_of_other_tables_is_refused(dialect: Dialect) {
    let server = Database::start(dialect).await;
    server.spoil();
    let own = locks(&server.url()).await;
    let program = Program::connect(&server.url(), 1).await;
    match dialect {
        Dialect::Postgres => {
            program.run("CREATE SCHEMA other; SET search_path = other").await;
        }
        _ => {
            let user = server.sql("SELECT CURRENT_USER()").await.trim().replace('@', "'@'");
            let make = format!("CREATE DATABASE other; GRANT ALL ON other.* TO '{user}'");
            server.sql_as_admin(&make).await;
            program.run("USE other").await;
        }
    }
    program.run("CREATE TABLE numbers (n bigint)").await;
    let guard = acquire(&own, "a").await;
    for _ in ["no tables", "tables of other locks"] {
        let refused = program.insert(1, &guard, async {}).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidOption { .. }), "{refused:?}");
        assert!(refused.to_string().contains("the database and the schema"), "{refused}");
        program.run(&schema(dialect)).await;
    }
    assert_eq!(program.run("SELECT n FROM numbers").await, 0);
    guard.release().await.unwrap();
}

async fn a_revoke_waits_for_the_commit_and_a_commit_for_the_revoke(dialect: Dialect) {
    let (server, own, operator) = start(dialect).await;
    let (program, other) =
        (Program::connect(&server.url(), 1).await, Program::connect(&server.url(), 1).await);
    let waiting = match dialect {
        Dialect::Postgres => "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        _ => "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    };
    let one_waits = async || {
        eventually("one waits", async || server.sql(waiting).await.trim() != "0").await;
    };

    let guard = acquire(&own, "a").await;
    program.run("BEGIN").await;
    let check = guard.lease_as::<SqlLease>().unwrap().check_sql();
    assert_eq!(program.run(&check).await, 1);
    let revoked = tokio::spawn(async move { revoke(&operator, "a").await });
    one_waits().await;
    if dialect == Dialect::Postgres {
        guard.renew().await.unwrap();
    }
    assert_eq!(server.entries().await, 1);
    program.run("COMMIT").await;
    revoked.await.unwrap();
    assert_eq!(server.entries().await, 0);

    let guard = acquire(&own, "b").await;
    other.run("BEGIN; DELETE FROM distlock_v1_entries").await;
    let (late, ()) = tokio::join!(program.insert(1, &guard, async {}), async {
        one_waits().await;
        other.run("COMMIT").await;
    });
    let late = late.unwrap_err();
    assert!(late.is_lost(), "{late:?}");
    assert!(numbers(&server).await.is_empty());
}
