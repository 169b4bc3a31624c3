//! The limits of a connection's waits.

use std::{net::TcpListener, time::Duration};

use lock_core::{Error, Lock, Locks};
use lock_sql::{
    Dialect,
    client::{Connection, MySqlConnection, PgConnection, raw_sql},
};

use crate::servers::{Database, bounded::bounded, connect, eventually, locks, on_both};

on_both!(a_silent_host_is_given_up_in_time, a_silent_request_is_given_up_in_time);

/// Its kernel accepts connections, and no program answers.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

async fn a_silent_host_is_given_up_in_time(dialect: Dialect) {
    let (server, silent) = (Database::start(dialect).await, silent());
    let (real, dumb) = (server.addr().to_string(), silent.local_addr().unwrap().to_string());
    let alone = server.url().replace(&real, &dumb) + "?connect_timeout=300ms";
    let error = connect(&alone).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("no answer within 300ms"), "{error}");
    // The silent host does not use up the time for both.
    let both = server.url().replace(&real, &format!("{dumb},{real}"));
    let both = both + "?failover=managed&connect_timeout=10s";
    let connecting = bounded("a silent host", Duration::from_secs(10), connect(&both));
    let found = Locks::new(connecting.await.unwrap());
    let guard = found.lock("a").unwrap().acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// Another transaction has the name's counter, so no request is answered. Each that was given up
/// waits on at the server. Without the option there would be at most four within the TTL.
async fn a_silent_request_is_given_up_in_time(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&(server.url() + "?request_timeout=100ms")).await;
    let lock = "BEGIN; SELECT * FROM distlock_v1_slots FOR UPDATE";
    let attempt = locks.lock("a").unwrap().ttl(Duration::from_secs(2));
    match dialect {
        Dialect::Postgres => {
            let mut other = PgConnection::connect(&server.url()).await.unwrap();
            raw_sql(lock).execute(&mut other).await.unwrap();
            is_sent_often(&server, attempt).await;
        }
        _ => {
            let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
            raw_sql(lock).execute(&mut other).await.unwrap();
            is_sent_often(&server, attempt).await;
        }
    }
}

async fn is_sent_often(server: &Database, lock: Lock) {
    let attempt = tokio::spawn(lock.acquire());
    eventually("many requests were given up", async || {
        server.counters().await.unwrap().get("waiting") >= 5
    })
    .await;
    attempt.abort();
}
