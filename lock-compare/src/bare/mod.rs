//! The stores through their bare clients, for what is no key.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::{Dialect, Sql, SqlArg};
