//! A user that may not create tables.

use lock_core::Error;
use lock_sql::{Dialect, schema};

use crate::servers::{Database, connect, locks, on_both};

on_both!(
    tables_made_by_a_migration_are_used,
    no_password_is_printed,
    a_missing_database_is_a_mistake,
    a_lock_whose_release_is_denied_is_free_after_its_ttl,
);

/// A user without any right but to log in, and the statements that allow it to lock.
pub fn user(dialect: Dialect) -> (&'static str, String) {
    let tables = ["slots", "entries", "marks"].map(|table| format!("distlock_v1_{table}"));
    let grant = |to: &str| {
        let grants = tables
            .iter()
            .map(|table| format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {to};\n"));
        grants.collect::<String>()
    };
    match dialect {
        Dialect::Postgres => ("CREATE ROLE plain LOGIN PASSWORD 'plain'", grant("plain")),
        _ => (
            "CREATE USER plain@'%' IDENTIFIED BY 'plain'; GRANT CREATE TEMPORARY TABLES ON lab.* TO \
             plain@'%'",
            grant("plain@'%'"),
        ),
    }
}

async fn tables_made_by_a_migration_are_used(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (create, grant) = user(dialect);
    server.sql(create).await;
    let url = server.url_as("plain:plain");
    let refused = connect(&url).await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    let shown = refused.to_string();
    assert!(shown.contains("(lock_sql::schema in Rust)"), "{shown}");
    server.sql(&schema(dialect)).await;
    server.sql(&grant).await;
    let locks = locks(&url).await;
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    assert_eq!(server.entries().await, 1);
    guard.release().await.unwrap();
    // Creating the tables again does no harm.
    server.sql(&schema(dialect)).await;
    locks.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

async fn a_missing_database_is_a_mistake(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let url = server.url();
    let (server_only, _) = url.rsplit_once('/').unwrap();
    let missing = format!("{server_only}/nodb");
    let as_admin = missing.replace("//lab:", "//admin:");
    let told = if dialect == Dialect::Postgres { &missing } else { &as_admin };
    let refused = connect(told).await.unwrap_err();
    assert!(matches!(refused, Error::Misconfigured { .. }), "{refused:?}");
    let shown = refused.to_string();
    assert!(shown.contains("nodb") && shown.contains("create it"), "{shown}");
    assert!(!shown.contains("at line"), "{shown}");
    if dialect == Dialect::MySql {
        // It does not tell every user which databases there are.
        let refused = connect(&missing).await.unwrap_err();
        assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
        assert!(refused.to_string().contains("there is none of this name"), "{refused}");
    }
}

async fn no_password_is_printed(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&server.url()).await;
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let url = server.url();
    let (_, login) = url.split_once("://").unwrap();
    let (_, password) = login.split_once(':').unwrap();
    // The part that is the same in a URL and elsewhere.
    let password: String = password.chars().take_while(char::is_ascii_alphanumeric).collect();
    assert!(password.len() > 8, "{password}");
    for shown in [format!("{locks:?}"), format!("{guard:?}"), format!("{:?}", locks.driver())] {
        assert!(!shown.contains(&password), "{shown}");
    }
}

/// The release is not tried again: the lock is not renewed, so it expires in any case.
async fn a_lock_whose_release_is_denied_is_free_after_its_ttl(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let (create, grant) = user(dialect);
    server.sql(create).await;
    server.sql(&schema(dialect)).await;
    server.sql(&grant).await;
    let locks = locks(&server.url_as("plain:plain")).await;
    let lock = locks.lock("a").unwrap().ttl(std::time::Duration::from_secs(1));
    let guard = lock.acquire().await.unwrap();
    let to = if dialect == Dialect::Postgres { "plain" } else { "plain@'%'" };
    server.sql(&format!("REVOKE DELETE ON distlock_v1_entries FROM {to}")).await;
    let refused = guard.release().await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused:?}");
    assert_eq!(server.entries().await, 1);
    server.sql(&format!("GRANT DELETE ON distlock_v1_entries TO {to}")).await;
    lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(server.entries().await, 0);
}
