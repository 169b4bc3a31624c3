//! The way to the database: connections, turns, scripts and their answers.

pub(crate) mod cautions;
mod connections;
pub(crate) mod database;
pub(crate) mod failure;
#[cfg(all(feature = "properties", feature = "sqlite"))]
pub(crate) mod faults;
pub(crate) mod given_client;
pub(crate) mod given_transaction;
pub(crate) mod hosts;
mod logins;
pub(crate) mod method;
#[cfg(feature = "mysql")]
mod mysql;
pub(crate) mod open;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod remote;
mod run;
pub(crate) mod script;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod tls_error;
pub(crate) mod turns;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod values;
mod verdict;
