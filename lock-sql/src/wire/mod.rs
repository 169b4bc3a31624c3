//! The way to the database: connections, whose turn it is, scripts and their answers.

pub(crate) mod connections;
pub(crate) mod database;
#[cfg(all(feature = "properties", feature = "sqlite"))]
pub(crate) mod faults;
pub(crate) mod limit;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
pub(crate) mod own_client;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod script;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod server;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod turns;
