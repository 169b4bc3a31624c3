//! Locks in a file of SQLite, and on servers of PostgreSQL and MariaDB.

#[cfg(feature = "sqlite")]
mod file;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod servers;
#[cfg(any(feature = "sqlite", all(feature = "mysql", feature = "postgres")))]
mod support;
