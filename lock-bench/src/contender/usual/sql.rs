//! The locks of databases themselves: `GET_LOCK` of MySQL and MariaDB, `pg_advisory_lock` of
//! PostgreSQL. They belong to a connection, so each worker has one.

use std::time::Duration;

use async_trait::async_trait;
use distlock::StoreUrl;
use futures_util::future::BoxFuture;
#[cfg(feature = "postgres")]
use sqlx::query;
use sqlx::query_scalar;

use crate::{
    Failure, Role,
    contender::{Client, Worker, floor::database::Connection, way::Opened},
};

pub(super) fn open(url: StoreUrl, _: Duration, _: Role) -> BoxFuture<'static, Opened> {
    Box::pin(async { Ok(Box::new(Database(url)) as Box<dyn Client>) })
}

struct Database(StoreUrl);

#[async_trait]
impl Client for Database {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let connection = Connection::open(&self.0).await?;
        Ok(Box::new(Session { connection, name: name.to_owned() }))
    }
}

/// A drop disconnects, which frees what is held.
struct Session {
    connection: Connection,
    name: String,
}

#[async_trait]
impl Worker for Session {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        match &mut self.connection {
            #[cfg(feature = "mysql")]
            Connection::MySql(connection) => {
                // Names have at most 64 characters.
                let lock = query_scalar::<sqlx::MySql, _>("SELECT GET_LOCK(MD5(?), 86400)");
                let taken: Option<i64> =
                    lock.bind(self.name.as_str()).fetch_one(connection).await?;
                match taken {
                    Some(1) => Ok(None),
                    _ => Err("MySQL did not give its lock within a day".into()),
                }
            }
            #[cfg(feature = "postgres")]
            Connection::Postgres(connection) => {
                let lock = query::<sqlx::Postgres>("SELECT pg_advisory_lock(hashtext($1))");
                lock.bind(self.name.as_str()).execute(connection).await?;
                Ok(None)
            }
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(_) => Err("SQLite has no locks with names".into()),
        }
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let released: bool = match &mut self.connection {
            #[cfg(feature = "mysql")]
            Connection::MySql(connection) => {
                let unlock = query_scalar::<sqlx::MySql, _>("SELECT RELEASE_LOCK(MD5(?))");
                let done: Option<i64> =
                    unlock.bind(self.name.as_str()).fetch_one(connection).await?;
                done == Some(1)
            }
            #[cfg(feature = "postgres")]
            Connection::Postgres(connection) => {
                let unlock = "SELECT pg_advisory_unlock(hashtext($1))";
                let unlock = query_scalar::<sqlx::Postgres, _>(unlock);
                unlock.bind(self.name.as_str()).fetch_one(connection).await?
            }
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(_) => false,
        };
        match released {
            true => Ok(()),
            false => Err("the database's lock was not this connection's".into()),
        }
    }
}
