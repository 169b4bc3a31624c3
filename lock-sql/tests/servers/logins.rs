//! Logins that a server refuses: few of them, since a server may lock an account after some.

use std::{fs, time::Duration};

use lock_core::{Clock, Error, Locks};
use lock_lab::Postgres;
use lock_sql::{
    Dialect,
    client::{Connection, MySqlConnection, PgConnection, raw_sql},
};

use crate::servers::{
    Database, connect, eventually, hosts, locks, on_both,
    rotation::{end_connections, set_password},
};

on_both!(
    a_burst_meets_a_changed_password_once,
    a_password_that_is_in_the_file_first_fails_no_acquire,
    the_connections_that_there_are_work_on,
    the_connections_to_one_of_several_hosts_work_on,
);

/// How many logins of the user `plain` the server has refused, by its log.
pub fn refused(server: &Database) -> usize {
    let line = match server {
        Database::MariaDb(_) => "Access denied for user 'plain'",
        Database::Postgres(_) => "password authentication failed for user \"plain\"",
    };
    server.log().matches(line).count()
}

/// Eight acquires at once.
async fn burst(locks: &Locks) -> Vec<Result<lock_core::LockGuard, Error>> {
    let acquire = |n: usize| tokio::spawn(locks.lock(n.to_string()).unwrap().acquire());
    let mut granted = Vec::new();
    for asked in (0..8).map(acquire).collect::<Vec<_>>() {
        granted.push(asked.await.unwrap());
    }
    granted
}

async fn a_burst_meets_a_changed_password_once(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    let locks = locks(&server.url_as("plain:plain")).await;
    set_password(&server, "other").await;
    end_connections(&server, "plain").await;
    for granted in burst(&locks).await {
        assert!(granted.is_err(), "{granted:?}");
    }
    eventually("a refused login", async || refused(&server) > 0).await;
    // One, and one more for each pause that a busy machine takes.
    let refused = refused(&server);
    assert!(refused <= 3, "{refused}");
}

/// The connection for pushes is lost, and all others stay idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_for_pushes_does_not_hammer_a_changed_password() {
    let server = Database::start_for_everyone(Dialect::Postgres).await;
    let locks = locks(&server.url_as("plain:plain")).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    let listening = "FROM pg_stat_activity WHERE usename = 'plain' AND query ~ '^LISTEN'";
    eventually("it listens", async || {
        server.sql(&format!("SELECT count(*) {listening}")).await.trim() == "1"
    })
    .await;
    set_password(&server, "other").await;
    server.sql_as_admin(&format!("SELECT pg_terminate_backend(pid) {listening}")).await;
    eventually("a refused login", async || refused(&server) > 0).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    // After 1 s, 3 s and 5 s. Without a memory of refusals there would be eleven.
    let refused = refused(&server);
    assert!(refused <= 5, "{refused}");
    drop(locks);
}

/// The order that the pages recommend. The server knows the old password only, and ends the
/// connections; then it knows the new one only.
async fn a_password_that_is_in_the_file_first_fails_no_acquire(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "plain\n").unwrap();
    let url = format!("{}?password_file={}", server.url_as("plain"), file.path().display());
    let locks = locks(&url).await;
    fs::write(&file, "second\n").unwrap();
    let began = Clock::Boot.now();
    end_connections(&server, "plain").await;
    let guards: Vec<_> = burst(&locks).await.into_iter().map(Result::unwrap).collect();
    set_password(&server, "second").await;
    end_connections(&server, "plain").await;
    for guard in guards {
        guard.release().await.unwrap();
    }
    // Once for the new one, once for the old one, and once for each pause in between, of a second, or
    // less where the server is slow to refuse.
    let (refused, took) = (refused(&server), Clock::Boot.now().since(began));
    assert!(refused <= 4 + 2 * took.as_secs() as usize, "{refused} in {took:?}");
}

/// The server knows another password, and the file does not. A new connection would be refused.
async fn the_connections_that_there_are_work_on(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    let locks = locks(&server.url_as("plain:plain")).await;
    connections_work_on(&server, &locks).await;
}

/// All hosts refuse the login.
async fn the_connections_to_one_of_several_hosts_work_on(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    let stranger = Database::start(dialect).await;
    let locks = locks(&hosts::url(&server.url_as("plain:plain"), &[&stranger, &server])).await;
    connections_work_on(&server, &locks).await;
}

async fn connections_work_on(server: &Database, locks: &Locks) {
    const LOCK: &str = "BEGIN; SELECT * FROM distlock_v1_slots FOR UPDATE";
    match server {
        Database::Postgres(_) => {
            let mut other = PgConnection::connect(&server.url()).await.unwrap();
            raw_sql(LOCK).execute(&mut other).await.unwrap();
            let asked = ask_twice(server, locks).await;
            raw_sql("COMMIT").execute(&mut other).await.unwrap();
            granted(asked).await;
        }
        Database::MariaDb(_) => {
            let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
            raw_sql(LOCK).execute(&mut other).await.unwrap();
            let asked = ask_twice(server, locks).await;
            raw_sql("COMMIT").execute(&mut other).await.unwrap();
            granted(asked).await;
        }
    }
}

type Asked = tokio::task::JoinHandle<lock_core::Result<lock_core::LockGuard>>;

/// The first acquire occupies the connection, and the second one asks for one more.
async fn ask_twice(server: &Database, locks: &Locks) -> [Asked; 2] {
    let first = tokio::spawn(locks.lock("a").unwrap().acquire());
    eventually("it waits for a row", async || server.counters().await.unwrap().get("waiting") > 0)
        .await;
    set_password(server, "other").await;
    let second = tokio::spawn(locks.lock("b").unwrap().acquire());
    eventually("a refused login", async || refused(server) > 0).await;
    [first, second]
}

async fn granted(asked: [Asked; 2]) {
    for asked in asked {
        asked.await.unwrap().unwrap().release().await.unwrap();
    }
}

/// The new password is in the file first, and the server delays each refusal for longer than the
/// limit of a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_password_is_tried_though_the_server_is_slow_to_refuse_the_new_one() {
    let delay =
        ["shared_preload_libraries=pg_stat_statements,auth_delay", "auth_delay.milliseconds=9000"];
    let builder = delay.iter().fold(Postgres::builder(), |to, setting| to.arg("-c").arg(*setting));
    let server = Database::from(builder.start().await.unwrap());
    let server = server.for_everyone(Dialect::Postgres).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "plain\n").unwrap();
    let (url, file_name) = (server.url_as("plain"), file.path().display());
    let locks = locks(&format!("{url}?connect_timeout=2s&password_file={file_name}")).await;
    fs::write(&file, "second\n").unwrap();
    end_connections(&server, "plain").await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    set_password(&server, "second").await;
    end_connections(&server, "plain").await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_locked_account_is_denied() {
    let server = Database::start_for_everyone(Dialect::MySql).await;
    server.sql_as_admin("ALTER USER plain@'%' ACCOUNT LOCK").await;
    let denied = connect(&server.url_as("plain:plain")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    assert!(denied.to_string().contains("locked"), "{denied}");
    server.spoil();
    let unlock = "ALTER USER plain@'%' ACCOUNT UNLOCK; SET GLOBAL max_password_errors = 1";
    server.sql_as_admin(unlock).await;
    connect(&server.url_as("plain:wrong")).await.unwrap_err();
    let denied = connect(&server.url_as("plain:plain")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    assert!(denied.to_string().contains("too many credential errors"), "{denied}");
}
