//! A login that changes while locks are held.

use std::{fs, time::Duration};

use lock_core::{Error, Held, LossReason};
use lock_sql::Dialect;

use crate::servers::{Database, eventually, locks, on_both, rights::user};

on_both!(
    a_new_password_in_the_file_loses_no_lock,
    another_user_in_the_files_loses_no_lock,
    another_user_takes_over_though_the_connections_of_the_first_one_stay,
);

const TTL: Duration = Duration::from_secs(10);

/// Sets another password of the user `plain`.
pub async fn set_password(server: &Database, password: &str) {
    let change = match server {
        Database::MariaDb(_) => format!("SET PASSWORD FOR plain@'%' = PASSWORD('{password}')"),
        Database::Postgres(_) => format!("ALTER USER plain PASSWORD '{password}'"),
    };
    server.sql_as_admin(&change).await;
}

/// Ends all connections of a user.
pub async fn end_connections(server: &Database, user: &str) {
    let end = match server {
        Database::MariaDb(_) => format!("KILL USER {user}"),
        Database::Postgres(_) => format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'"
        ),
    };
    server.sql_as_admin(&end).await;
}

async fn change_password(server: &Database, password: &str) {
    set_password(server, password).await;
    end_connections(server, "plain").await;
}

/// The server ends all connections, so that the client must log in again.
async fn a_new_password_in_the_file_loses_no_lock(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    change_password(&server, "first").await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "first\n").unwrap();
    let url = format!("{}?password_file={}", server.url_as("plain"), file.path().display());
    let locks = locks(&url).await;
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock("held").unwrap().ttl(TTL).acquire());
    eventually("it waits", async || locks.inspect("held").await.unwrap().len() == 2).await;
    change_password(&server, "second").await;
    let other = locks.lock("other").unwrap();
    eventually("the old password is refused", async || {
        // One that logged in just before may not have been in the list yet.
        end_connections(&server, "plain").await;
        match other.try_acquire().await {
            Err(Error::Denied { source, .. }) => {
                let shown = source.to_string();
                assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
                true
            }
            _ => false,
        }
    })
    .await;
    fs::write(&file, "second\n").unwrap();
    is_renewed(&held).await;
    assert!(held.is_valid() && !waiter.is_finished());
    held.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// Waits longer than the server would keep a lock that is not renewed.
async fn is_renewed(held: &Held) {
    held.renew().await.unwrap();
    let early: Result<LossReason, _> = tokio::time::timeout(TTL + TTL / 4, held.lost()).await;
    assert!(early.is_err(), "lost: {early:?}");
}

/// Removes the user `plain`. The server keeps its connections.
async fn remove_plain(server: &Database) {
    let remove = match server {
        Database::MariaDb(_) => "DROP USER plain@'%'",
        Database::Postgres(_) => "DROP OWNED BY plain; DROP ROLE plain",
    };
    server.sql_as_admin(remove).await;
}

/// As a service does that makes a user for each term: the first user is removed when there is
/// another one.
async fn another_user_in_the_files_loses_no_lock(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    another_user_takes_over(server, dialect, "", async |server| {
        remove_plain(server).await;
        end_connections(server, "plain").await;
    })
    .await;
}

async fn another_user_takes_over_though_the_connections_of_the_first_one_stay(dialect: Dialect) {
    let server = Database::start_for_everyone(dialect).await;
    another_user_takes_over(server, dialect, "", async |server| remove_plain(server).await).await;
}

/// Without a right to the schema, PostgreSQL does not even find the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_takes_over_where_the_tables_have_a_schema() {
    let server = Database::start(Dialect::Postgres).await;
    server.spoil();
    server.sql("CREATE SCHEMA locks; ALTER DATABASE lab SET search_path = locks").await;
    let server = server.for_everyone(Dialect::Postgres).await;
    let enter = "GRANT USAGE ON SCHEMA locks TO plain";
    server.sql(enter).await;
    let remove = async |server: &Database| remove_plain(server).await;
    another_user_takes_over(server, Dialect::Postgres, enter, remove).await;
}

/// `more`: what the users need besides the rights to the tables.
async fn another_user_takes_over(
    server: Database,
    dialect: Dialect,
    more: &str,
    remove_plain: impl AsyncFnOnce(&Database),
) {
    let [name, password] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    fs::write(&name, "plain\n").unwrap();
    fs::write(&password, "plain\n").unwrap();
    let url = server.url_as("").replace("://@", "://");
    let (name_file, password_file) = (name.path().display(), password.path().display());
    let locks = locks(&format!("{url}?user_file={name_file}&password_file={password_file}")).await;
    let held = locks.lock("held").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiter = tokio::spawn(locks.lock("held").unwrap().ttl(TTL).acquire());
    eventually("it waits", async || locks.inspect("held").await.unwrap().len() == 2).await;

    let (create, grant) = user(dialect);
    server.sql(&create.replace("plain", "another")).await;
    server.sql(&(grant + more).replace("plain", "another")).await;
    fs::write(&name, "another\n").unwrap();
    remove_plain(&server).await;
    let other = locks.lock("other").unwrap();
    eventually("half a change is refused", async || {
        let refusal = other.try_acquire().await;
        matches!(refusal, Err(Error::Denied { .. } | Error::Rejected { .. }))
    })
    .await;
    fs::write(&password, "another\n").unwrap();
    is_renewed(&held).await;
    assert!(held.is_valid() && !waiter.is_finished());
    other.acquire().await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}
