//! A password that changes while locks are held.

use std::{fs, time::Duration};

use lock_core::{Error, LossReason};
use lock_sql::Dialect;

use crate::{Database, eventually, locks, on_both};

on_both!(a_new_password_in_the_file_loses_no_lock);

const TTL: Duration = Duration::from_secs(4);

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
    eventually("the old password is refused", async || match other.try_acquire().await {
        Err(Error::Denied { source, .. }) => {
            let shown = source.to_string();
            assert!(!shown.contains("first") && !shown.contains("second"), "{shown}");
            true
        }
        _ => false,
    })
    .await;
    fs::write(&file, "second\n").unwrap();
    held.renew().await.unwrap();
    let mut lost = Box::pin(held.lost());
    // Longer than the server would keep a lock that is not renewed.
    let early: Result<LossReason, _> = tokio::time::timeout(TTL + TTL / 4, &mut lost).await;
    assert!(early.is_err(), "lost: {early:?}");
    assert!(held.is_valid() && !waiter.is_finished());
    held.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}
