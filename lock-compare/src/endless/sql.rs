//! A row with a unique key, in its own table.

use async_trait::async_trait;
use sqlx::Error;

use super::Things;
use crate::Failure;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS compare_endless (name VARCHAR(255) PRIMARY KEY)";

/// Whether the row or the table did not exist yet.
fn is_new<T>(made: Result<T, Error>) -> Result<bool, Failure> {
    match made {
        Ok(_) => Ok(true),
        Err(Error::Database(error)) if error.is_unique_violation() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

macro_rules! row {
    ($(#[$about:meta])* $row:ident, $feature:literal, $pool:ty, $insert:literal, $delete:literal) => {
        $(#[$about])*
        #[cfg(feature = $feature)]
        pub(super) struct $row($pool);

        #[cfg(feature = $feature)]
        impl $row {
            pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
                let pool = <$pool>::connect(url).await?;
                // Two clients may create the table at the same time.
                is_new(sqlx::query(TABLE).execute(&pool).await)?;
                Ok(Self(pool))
            }
        }

        #[cfg(feature = $feature)]
        #[async_trait]
        impl Things for $row {
            async fn create(&self, name: &str) -> Result<bool, Failure> {
                is_new(sqlx::query($insert).bind(name).execute(&self.0).await)
            }

            async fn remove(&self, name: &str) -> Result<bool, Failure> {
                let done = sqlx::query($delete).bind(name).execute(&self.0).await?;
                Ok(done.rows_affected() > 0)
            }
        }
    };
}

row!(
    /// A row of MySQL.
    MySqlRow,
    "mysql",
    sqlx::MySqlPool,
    "INSERT INTO compare_endless VALUES (?)",
    "DELETE FROM compare_endless WHERE name = ?"
);
row!(
    /// A row of PostgreSQL.
    PostgresRow,
    "postgres",
    sqlx::PgPool,
    "INSERT INTO compare_endless VALUES ($1)",
    "DELETE FROM compare_endless WHERE name = $1"
);
