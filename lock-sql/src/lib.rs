//! Distributed locks on SQLite, PostgreSQL and MySQL.

#![cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]

mod config;
mod connections;
mod database;
mod dialect;
mod entry;
mod error;
#[cfg(all(feature = "properties", feature = "sqlite"))]
mod faults;
mod lease;
mod lock;
mod looks;
#[cfg(feature = "mysql")]
mod mysql;
mod observe;
mod operators;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod round;
mod row;
mod schema;
mod script;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;

/// The client library, in the version that this driver uses.
pub use sqlx as client;

#[cfg(all(feature = "properties", feature = "sqlite"))]
pub use crate::faults::Faults;
pub use crate::{
    config::{Server, SqlConfig, Target, Tls},
    dialect::Dialect,
    lease::SqlLease,
    lock::SqlLock,
    schema::schema,
};
