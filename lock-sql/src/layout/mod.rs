//! What is in the database: tables and rows, and what the databases say differently.

pub(crate) mod dialect;
pub(crate) mod row;
pub(crate) mod schema;
