//! The state of the connection, as a value and as a stream: during an outage, until the close, on
//! every store with a server.
#![cfg(any(
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use distlock::{ConnectionState, Locks};
use futures_util::{Stream, StreamExt};

use crate::support::{connect, eventually, start};

/// Limit for expected events. Longer than a stall of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

on_every_server!(an_outage_its_end_and_the_close_are_reported);
test_on!("postgres" postgres an_outage_its_end_and_the_close_are_reported);
test_on!("mysql" mysql an_outage_its_end_and_the_close_are_reported);

async fn an_outage_its_end_and_the_close_are_reported(store: &str) {
    let server = start(store).await;
    let url = server.url();
    let with = if url.contains('?') { '&' } else { '?' };
    let locks = connect(&format!("{url}{with}ttl=6s")).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = tokio::spawn(hear(locks.connections(), told.clone()));
    assert_eq!(locks.connection(), ConnectionState::Connected);
    // Renewals contact the store, too.
    let guard = locks.lock("held").unwrap().acquire().await.unwrap();

    server.stop();
    let lost = |state: &ConnectionState| matches!(state, ConnectionState::Disconnected(_));
    eventually("it is disconnected", async || lost(&asked(&locks).await)).await;
    server.resume();
    let back = async || asked(&locks).await == ConnectionState::Connected;
    eventually("it is connected again", back).await;
    let ended = async || told.lock().unwrap().iter().skip_while(|state| !lost(state)).count() > 1;
    eventually("who listens hears of it", ended).await;
    drop(guard);
    locks.close().await.unwrap();
    assert_eq!(locks.connection(), ConnectionState::Closed);

    tokio::time::timeout(PATIENCE, hears).await.expect("the stream ends").unwrap();
    let told = told.lock().unwrap().clone();
    let first_loss = told.iter().position(lost).unwrap_or_else(|| panic!("no outage: {told:?}"));
    assert_eq!(told[..first_loss], [ConnectionState::Connected], "{told:?}");
    assert!(told[first_loss..].contains(&ConnectionState::Connected), "{told:?}");
    assert_eq!(told.last(), Some(&ConnectionState::Closed), "{told:?}");
    assert!(told.windows(2).all(|two| two[0] != two[1]), "told twice: {told:?}");
    let why = told[first_loss].to_string();
    assert!(why.len() > "disconnected: ".len(), "no reason: {why:?}");
}

async fn hear(
    mut states: impl Stream<Item = ConnectionState> + Unpin,
    told: Arc<Mutex<Vec<ConnectionState>>>,
) {
    while let Some(state) = states.next().await {
        told.lock().unwrap().push(state);
    }
}

/// The state after a request to the store.
async fn asked(locks: &Locks) -> ConnectionState {
    // The result does not matter: an error comes within the ping's limit.
    let _ = locks.ping().await;
    locks.connection()
}

/// The stream does not keep an unused connection open, and ends with it.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_stream_ends_with_the_connection() {
    let file = crate::support::Store::open("sqlite").await;
    let locks = connect(&file.url()).await;
    let told = tokio::spawn(locks.connections().collect::<Vec<_>>());
    drop(locks);
    let told = tokio::time::timeout(PATIENCE, told).await.expect("the stream ends").unwrap();
    assert_eq!(told.last(), Some(&ConnectionState::Closed));
}
