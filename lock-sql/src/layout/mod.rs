//! The content of the database: tables, rows, and the differences between the databases.

pub(crate) mod dialect;
pub(crate) mod row;
pub(crate) mod schema;
