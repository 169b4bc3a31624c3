//! The limits of a connection's waits.

use std::{net::TcpListener, time::Duration};

use lock_core::{Clock, Error};
use lock_sql::Dialect;

use crate::{Database, connect, locks, on_both};

on_both!(a_silent_host_is_given_up_in_time, a_silent_request_is_given_up_in_time);

/// Its kernel accepts connections, and no program answers.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

async fn a_silent_host_is_given_up_in_time(dialect: Dialect) {
    let (server, silent) = (Database::start(dialect).await, silent());
    let (real, dumb) = (server.addr().to_string(), silent.local_addr().unwrap().to_string());
    let start = Clock::Boot.now();
    let alone = server.url().replace(&real, &dumb) + "?connect_timeout=300ms";
    let error = connect(&alone).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("no answer within 300ms"), "{error}");
    let both = server.url().replace(&real, &format!("{dumb},{real}")) + "?failover=managed";
    let guard = locks(&both).await.lock("a").unwrap().acquire().await.unwrap();
    let took = Clock::Boot.now().since(start);
    assert!(took < Duration::from_secs(3), "{took:?}");
    guard.release().await.unwrap();
}

async fn a_silent_request_is_given_up_in_time(dialect: Dialect) {
    let server = Database::start(dialect).await;
    let locks = locks(&(server.url() + "?request_timeout=100ms")).await;
    let held = locks.lock("a").unwrap().ttl(Duration::from_secs(2)).acquire().await.unwrap();
    server.stop();
    let error = held.renew().await.unwrap_err();
    server.resume();
    assert!(error.to_string().contains("no answer within 100ms"), "{error}");
}
