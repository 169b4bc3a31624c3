//! A database: one row with a unique name is inserted, then deleted. The second floor does in
//! distlock's own tables, and in one transaction, what a token, an expiry and a queue need.
//!
//! Rows are gone after each release. The first floor's table, which is empty then, stays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use distlock::sql::{Dialect, schema};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{
    NOTE,
    database::{Connection, dialect, hex},
    own,
};
use crate::{
    Failure,
    contender::{Asked, Client, Opening, Role, Worker},
};

/// As many connections as a client of distlock has to a server.
const CONNECTIONS: usize = 10;
/// Half a minute in microseconds: the life of entries.
const LIFE: u64 = 30_000_000;

pub(in crate::contender) fn open(Asked { url, role, .. }: Asked) -> Opening {
    Box::pin(async move {
        let (dialect, full) = (dialect(&url)?, role == Role::FloorKeys);
        // SQLite writes one transaction at a time.
        let count = if dialect == Dialect::Sqlite { 1 } else { CONNECTIONS };
        let mut idle = Vec::new();
        for _ in 0..count {
            let mut connection = Connection::open(&url).await?;
            if dialect == Dialect::MySql {
                let setup = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
                connection.run(setup.to_owned()).await?;
            }
            idle.push(connection);
        }
        let few = Few { room: Semaphore::new(count), idle: Mutex::new(idle) };
        let (known, tables) = match full {
            true => ("distlock_v1_entries", schema(dialect)),
            false => ("distlock_bench_floor", table(dialect)),
        };
        let look = few.run(format!("SELECT name FROM {known} WHERE 1 = 0")).await;
        // Another process may make them at the same time, and then one of the two fails.
        if look.is_err() && few.run(tables.clone()).await.is_err() {
            few.run(tables).await?;
        }
        Ok(Box::new(Connected { few: Arc::new(few), dialect, full }) as Box<dyn Client>)
    })
}

fn table(dialect: Dialect) -> String {
    let bytes = match dialect {
        Dialect::Postgres => "BYTEA",
        Dialect::MySql => "VARBINARY(700)",
        _ => "BLOB",
    };
    format!("CREATE TABLE IF NOT EXISTS distlock_bench_floor (name {bytes} PRIMARY KEY, note TEXT)")
}

/// The connections, used by one worker at a time. A drop disconnects.
struct Few {
    idle: Mutex<Vec<Connection>>,
    room: Semaphore,
}

impl Few {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, script: String) -> Result<(), Failure> {
        let _room = self.room.acquire().await?;
        let connection = self.idle().pop();
        let mut connection = connection.ok_or("a worker has left while it used a connection")?;
        let done = connection.run(script).await;
        self.idle().push(connection);
        done
    }
}

#[derive(Clone)]
struct Connected {
    few: Arc<Few>,
    dialect: Dialect,
    full: bool,
}

#[async_trait]
impl Client for Connected {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let name = literal(self.dialect, own(name).as_bytes());
        Ok(Box::new(Row { by: self.clone(), name, id: String::new() }))
    }
}

struct Row {
    by: Connected,
    /// A literal.
    name: String,
    /// Of the row that stands, among distlock's entries: a literal.
    id: String,
}

#[async_trait]
impl Worker for Row {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let (name, id) = (&self.name, Uuid::new_v4());
        let script = match self.by.full {
            true => {
                self.id = literal(self.by.dialect, id.as_bytes());
                enter(self.by.dialect, name, &self.id, id.as_bytes()[0])
            }
            false => {
                format!("INSERT INTO distlock_bench_floor (name, note) VALUES ({name}, '{NOTE}')")
            }
        };
        self.by.few.run(script).await?;
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let (name, id) = (&self.name, &self.id);
        let script = match self.by.full {
            true => format!(
                "DELETE FROM distlock_v1_entries WHERE attempt IN ({id}) AND name IN ({name})"
            ),
            false => format!("DELETE FROM distlock_bench_floor WHERE name = {name}"),
        };
        self.by.few.run(script).await
    }
}

/// The statements by which distlock enters an empty queue. It has 256 counters of tokens on a
/// server, one in a file.
fn enter(dialect: Dialect, name: &str, id: &str, slot: u8) -> String {
    let holder = literal(dialect, NOTE.as_bytes());
    let (greatest, slot, now) = match dialect {
        Dialect::MySql => {
            ("GREATEST", slot, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))")
        }
        Dialect::Postgres => {
            ("GREATEST", slot, "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        }
        // A constant, as distlock's: it counts by the machine's clock.
        _ => ("MAX", 0, "0"),
    };
    let null = if dialect == Dialect::Postgres { "NULL::bytea" } else { "NULL" };
    let entries = "distlock_v1_entries";
    let statements = format!(
        "UPDATE distlock_v1_slots SET token = {greatest}(token, (SELECT COALESCE(MAX(token), 0) \
         FROM {entries} WHERE name = {name})) + 1 WHERE slot = {slot}; \
         DELETE FROM {entries} WHERE name IN ({name}) AND expires <= {now}; \
         INSERT INTO {entries} (name, token, attempt, client, kind, weight, lim, ttl, expires, \
         since, holder, value, version, granted) SELECT {name}, token, {id}, {id}, 0, 0, 0, \
         {LIFE}, {now} + {LIFE}, {now}, {holder}, {null}, 0, {now} FROM distlock_v1_slots \
         WHERE slot = {slot} AND NOT EXISTS (SELECT 1 FROM {entries} WHERE attempt = {id}); \
         SELECT name, token, attempt, kind, weight, lim, expires - {now} AS alive, version, \
         since, granted FROM {entries} WHERE name IN ({name}) ORDER BY name, token;"
    );
    match dialect {
        Dialect::Postgres => statements,
        Dialect::MySql => format!("START TRANSACTION; {statements} COMMIT;"),
        _ => format!("BEGIN IMMEDIATE; {statements} COMMIT;"),
    }
}

/// Bytes as a literal.
fn literal(dialect: Dialect, bytes: &[u8]) -> String {
    let hex = hex(bytes);
    match dialect {
        Dialect::Postgres => format!("decode('{hex}', 'hex')"),
        _ => format!("x'{hex}'"),
    }
}
