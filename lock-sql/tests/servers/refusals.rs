//! What a server refuses for a moment, and what it refuses for good.

use std::fs;

use lock_core::Error;
use lock_sql::Dialect;

use crate::servers::{Database, connect, eventually, locks, tls::refused};

/// The second database of a server.
fn other(server: &Database) -> String {
    let url = server.url();
    let (address, _) = url.rsplit_once('/').unwrap();
    format!("{address}/other")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_connections_is_out_of_reach_for_a_moment() {
    let server = Database::start(Dialect::Postgres).await;
    server.spoil();
    server.sql_as_admin("CREATE DATABASE other OWNER lab").await;
    let url = other(&server);
    server.sql_as_admin("ALTER DATABASE other ALLOW_CONNECTIONS false").await;
    let refused = connect(&url).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("not currently accepting connections"), "{refused}");
    server.sql_as_admin("ALTER DATABASE other ALLOW_CONNECTIONS true").await;
    locks(&url).await.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// `gss` is one that the server has and the client library does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_method_of_postgres_that_the_client_lacks_is_named() {
    let server = Database::start(Dialect::Postgres).await;
    server.spoil();
    server.sql("CREATE ROLE kerberized LOGIN").await;
    let file = server.sql_as_admin("SHOW hba_file").await.trim().to_owned();
    let logins = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("host all kerberized all gss\n{logins}")).unwrap();
    server.sql_as_admin("SELECT pg_reload_conf()").await;
    let url = server.url_as("kerberized:secret");
    eventually("the file is read", async || {
        connect(&url).await.is_err_and(|error| error.to_string().contains("gss"))
    })
    .await;
    refused(&url, "wants the login method gss").await;
}
