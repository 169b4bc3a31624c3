//! The locks of databases themselves: `GET_LOCK` of MySQL and MariaDB, `pg_advisory_lock` of
//! PostgreSQL. They belong to a connection, so each worker has one.

use async_trait::async_trait;
use distlock::{StoreUrl, sql::Dialect};

use crate::{
    Failure,
    contender::{
        Asked, Client, Opening, Worker,
        floor::database::{Connection, dialect, hex},
    },
};

pub(in crate::contender) fn open(Asked { url, .. }: Asked) -> Opening {
    Box::pin(async { Ok(Box::new(Database(url)) as Box<dyn Client>) })
}

struct Database(StoreUrl);

#[async_trait]
impl Client for Database {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let connection = Connection::open(&self.0).await?;
        let name = hex(name.as_bytes());
        let (lock, unlock) = match dialect(&self.0)? {
            // Names have at most 64 characters.
            Dialect::MySql => (
                format!("SELECT GET_LOCK(MD5('{name}'), 86400)"),
                format!("SELECT RELEASE_LOCK(MD5('{name}'))"),
            ),
            _ => (
                format!("SELECT 1::bigint FROM pg_advisory_lock(hashtext('{name}'))"),
                format!("SELECT pg_advisory_unlock(hashtext('{name}'))::int::bigint"),
            ),
        };
        Ok(Box::new(Session { connection, lock, unlock }))
    }
}

/// A drop disconnects, which frees what is held.
struct Session {
    connection: Connection,
    /// The statements that take and give back: their result is 1.
    lock: String,
    unlock: String,
}

#[async_trait]
impl Worker for Session {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        match self.connection.number(&self.lock).await? {
            Some(1) => Ok(None),
            _ => Err("the database did not give its lock within a day".into()),
        }
    }

    async fn release(&mut self) -> Result<(), Failure> {
        match self.connection.number(&self.unlock).await? {
            Some(1) => Ok(()),
            _ => Err("the database's lock was not this connection's".into()),
        }
    }
}
