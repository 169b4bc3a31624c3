//! A database: one row with a unique name is inserted, then deleted. A second way does in one
//! transaction what a token, an expiry and a queue need.

use std::sync::{Arc, Mutex, PoisonError};

use distlock::sql::client::{AssertSqlSafe, Connection, Executor, raw_sql};
use tokio::sync::Semaphore;

use crate::{Load, Pair};

/// As many connections as a distlock client has.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const CONNECTIONS: usize = 8;

/// The statements in the dialect of one database.
pub struct Words {
    pub connections: usize,
    /// The first statements on each connection.
    pub setup: &'static str,
    pub bytes: &'static str,
    pub begin: &'static str,
    pub commit: &'static str,
}

#[cfg(feature = "sqlite")]
pub const SQLITE: Words = Words {
    // SQLite writes one transaction at a time.
    connections: 1,
    setup: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
    bytes: "BLOB",
    begin: "BEGIN IMMEDIATE;",
    commit: "COMMIT",
};

#[cfg(feature = "mysql")]
pub const MARIADB: Words = Words {
    connections: CONNECTIONS,
    setup: "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    bytes: "VARBINARY(700)",
    begin: "START TRANSACTION;",
    commit: "COMMIT",
};

#[cfg(feature = "postgres")]
pub const POSTGRES: Words = Words {
    connections: CONNECTIONS,
    setup: "SET client_min_messages = error",
    bytes: "BYTEA",
    // Each message is one transaction.
    begin: "",
    commit: "",
};

/// The connections, used by one task at a time.
struct Few<C> {
    idle: Mutex<Vec<C>>,
    room: Semaphore,
}

impl<C> Few<C> {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn pair<C>(url: &str, words: &Words) -> Arc<dyn Load>
where
    C: Connection + 'static,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let bytes = words.bytes;
    let table = format!("CREATE TABLE IF NOT EXISTS floor (name {bytes} PRIMARY KEY, note TEXT)");
    let few = connect::<C>(url, words, &[table]).await;
    load(few, |task| {
        let note = super::NOTE;
        [
            format!("INSERT INTO floor (name, note) VALUES ('{task}', '{note}')"),
            format!("DELETE FROM floor WHERE name = '{task}'"),
        ]
    })
}

/// Counts, removes what has expired, enters, lists.
pub async fn queueing<C>(url: &str, words: &Words) -> Arc<dyn Load>
where
    C: Connection + 'static,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let bytes = words.bytes;
    let mut tables = vec![
        "CREATE TABLE IF NOT EXISTS floor_counts (slot INTEGER PRIMARY KEY, token BIGINT)"
            .to_owned(),
        format!(
            "CREATE TABLE IF NOT EXISTS floor_queue (name {bytes}, token BIGINT, expires BIGINT, \
             note TEXT, PRIMARY KEY (name, token))"
        ),
    ];
    tables.extend((0..64).map(|task| format!("INSERT INTO floor_counts VALUES ({task}, 0)")));
    let few = connect::<C>(url, words, &tables).await;
    let (begin, commit) = (words.begin, words.commit);
    load(few, move |task| {
        let note = super::NOTE;
        [
            format!(
                "{begin} UPDATE floor_counts SET token = token + 1 WHERE slot = {task}; \
                 DELETE FROM floor_queue WHERE name = '{task}' AND expires < 1; \
                 INSERT INTO floor_queue SELECT '{task}', token, 1, '{note}' FROM floor_counts \
                 WHERE slot = {task}; \
                 SELECT token, note FROM floor_queue WHERE name = '{task}' ORDER BY token; {commit}"
            ),
            format!("DELETE FROM floor_queue WHERE name = '{task}'"),
        ]
    })
}

async fn connect<C>(url: &str, words: &Words, tables: &[String]) -> Arc<Few<C>>
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let mut idle = Vec::new();
    for _ in 0..words.connections {
        let mut connection = C::connect(url).await.expect("a connection");
        raw_sql(words.setup).execute(&mut connection).await.expect("a setting");
        idle.push(connection);
    }
    for table in tables {
        let table = raw_sql(AssertSqlSafe(table.clone())).execute(&mut idle[0]);
        table.await.expect("a table");
    }
    Arc::new(Few { room: Semaphore::new(idle.len()), idle: Mutex::new(idle) })
}

fn load<C>(
    few: Arc<Few<C>>,
    scripts: impl Fn(usize) -> [String; 2] + Send + Sync + 'static,
) -> Arc<dyn Load>
where
    C: Connection + 'static,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    Arc::new(move |task: usize| {
        let (few, scripts) = (few.clone(), scripts(task));
        let pair: Pair = Box::new(move || {
            let (few, scripts) = (few.clone(), scripts.clone());
            Box::pin(async move {
                for script in scripts {
                    let _room = few.room.acquire().await.expect("room");
                    let mut connection = few.idle().pop().expect("a connection");
                    let done = raw_sql(AssertSqlSafe(script)).fetch_all(&mut connection);
                    done.await.expect("an answer");
                    few.idle().push(connection);
                }
            })
        });
        pair
    })
}
