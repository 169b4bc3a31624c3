//! Servers whose sessions begin with an isolation that locks cannot have.

use std::sync::{Arc, Mutex};

use lock_core::Locks;
use lock_lab::{MariaDb, Postgres};
use lock_sql::client::{Connection, MySqlConnection, raw_sql};

use crate::{
    servers::{eventually, locks},
    support::contend::contend,
};

const CLIENTS: usize = 4;
const TURNS: usize = 25;

/// At `SERIALIZABLE` the attempts of a queue would conflict with each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_where_sessions_of_postgres_begin_serializable() {
    let setting = "default_transaction_isolation=serializable";
    let server = Postgres::builder().arg("-c").arg(setting).start().await.unwrap();
    let shown = server.sql("SHOW transaction_isolation").await.unwrap();
    assert_eq!(shown.trim(), "serializable");
    crowd(&server.url()).await;
    let conflicts = server.log().matches("could not serialize").count();
    assert_eq!(conflicts, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_where_sessions_of_mariadb_begin_serializable() {
    let builder = MariaDb::builder().arg("--transaction-isolation=SERIALIZABLE");
    let server = builder.start().await.unwrap();
    let shown = server.sql("SELECT @@tx_isolation").await.unwrap();
    assert_eq!(shown.trim(), "SERIALIZABLE");
    crowd(&server.url()).await;
    // InnoDB lets the crowd through at each level, only slower: the level itself shows it.
    let locks = locks(&server.url()).await;
    let mut other = MySqlConnection::connect(&server.url()).await.unwrap();
    raw_sql("BEGIN; SELECT * FROM distlock_v1_slots FOR UPDATE").execute(&mut other).await.unwrap();
    let waits = tokio::spawn(locks.lock("a").unwrap().acquire());
    let levels = "SELECT trx_isolation_level FROM information_schema.innodb_trx ORDER BY 1";
    eventually("both are at their levels", async || {
        server.sql(levels).await.unwrap() == "READ COMMITTED\nSERIALIZABLE"
    })
    .await;
    raw_sql("COMMIT").execute(&mut other).await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

/// Clients that add to a number which only the lock protects.
async fn crowd(url: &str) {
    let (one, other) = (locks(url).await, locks(url).await);
    contend(&one, &other).await;
    let number = Arc::new(Mutex::new(0));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(tokio::spawn(count(locks(url).await, number.clone())));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(*number.lock().unwrap(), CLIENTS * TURNS);
}

async fn count(locks: Locks, number: Arc<Mutex<usize>>) {
    for _ in 0..TURNS {
        let guard = locks.lock("counter").unwrap().acquire().await.unwrap();
        let read = *number.lock().unwrap();
        tokio::task::yield_now().await;
        *number.lock().unwrap() = read + 1;
        guard.release().await.unwrap();
    }
}
