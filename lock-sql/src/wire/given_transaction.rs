//! A transaction of the caller's.

#[cfg(feature = "mysql")]
use sqlx::MySql;
#[cfg(feature = "postgres")]
use sqlx::Postgres;
#[cfg(feature = "sqlite")]
use sqlx::Sqlite;
use sqlx::Transaction;

/// A transaction of the caller's: a `sqlx::Transaction` of `Sqlite`, `MySql` or `Postgres`.
#[derive(Debug)]
pub struct GivenTransaction<'c>(pub(crate) AnyTransaction<'c>);

#[derive(Debug)]
pub(crate) enum AnyTransaction<'c> {
    #[cfg(feature = "sqlite")]
    Sqlite(Transaction<'c, Sqlite>),
    #[cfg(feature = "mysql")]
    MySql(Transaction<'c, MySql>),
    #[cfg(feature = "postgres")]
    Postgres(Transaction<'c, Postgres>),
}

#[cfg(feature = "sqlite")]
impl<'c> From<Transaction<'c, Sqlite>> for GivenTransaction<'c> {
    fn from(transaction: Transaction<'c, Sqlite>) -> Self {
        Self(AnyTransaction::Sqlite(transaction))
    }
}

#[cfg(feature = "mysql")]
impl<'c> From<Transaction<'c, MySql>> for GivenTransaction<'c> {
    fn from(transaction: Transaction<'c, MySql>) -> Self {
        Self(AnyTransaction::MySql(transaction))
    }
}

#[cfg(feature = "postgres")]
impl<'c> From<Transaction<'c, Postgres>> for GivenTransaction<'c> {
    fn from(transaction: Transaction<'c, Postgres>) -> Self {
        Self(AnyTransaction::Postgres(transaction))
    }
}
