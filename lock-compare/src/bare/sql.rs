//! One connection to any of the databases.

use sqlx::{AssertSqlSafe, Connection, Row};

use crate::Store;

pub(crate) enum Sql {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqliteConnection),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgConnection),
    #[cfg(feature = "mysql")]
    Mysql(sqlx::MySqlConnection),
}

/// Differences between the databases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// The database's clock in milliseconds, as an expression.
    pub clock: &'static str,
    /// Type for casts of whole numbers.
    pub int: &'static str,
    /// Type for casts of texts.
    pub text: &'static str,
}

impl Dialect {
    pub(crate) fn of(store: Store) -> Self {
        match store {
            Store::Postgres => Self {
                clock: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
                int: "BIGINT",
                text: "TEXT",
            },
            Store::MySql => Self {
                clock: "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
                int: "SIGNED",
                text: "CHAR",
            },
            _ => Self {
                clock: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
                int: "INTEGER",
                text: "TEXT",
            },
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum SqlArg {
    Text(String),
    Number(i64),
}

impl From<&str> for SqlArg {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for SqlArg {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct SqlError(#[from] sqlx::Error);

impl SqlError {
    /// Whether another client has the row: its unique key, or a deadlock.
    pub(crate) fn is_taken(&self) -> bool {
        let error = self.0.as_database_error();
        error.is_some_and(|error| error.is_unique_violation()) || self.is_deadlock()
    }

    /// Whether it is an InnoDB deadlock between the waiters for a row and the client that deletes
    /// it. The statement had no effect, and can be repeated.
    pub(crate) fn is_deadlock(&self) -> bool {
        let code = self.0.as_database_error().and_then(|error| error.code());
        code.as_deref() == Some("40001")
    }
}

type Result<T> = std::result::Result<T, SqlError>;

/// Runs the same code with a connection of any kind.
macro_rules! with {
    ($sql:expr, $connection:ident => $body:expr) => {
        match $sql {
            #[cfg(feature = "sqlite")]
            Sql::Sqlite($connection) => $body,
            #[cfg(feature = "postgres")]
            Sql::Postgres($connection) => $body,
            #[cfg(feature = "mysql")]
            Sql::Mysql($connection) => $body,
        }
    };
}

macro_rules! query {
    ($text:expr, $args:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($text));
        for arg in $args {
            query = match arg {
                SqlArg::Text(text) => query.bind(text.clone()),
                SqlArg::Number(number) => query.bind(*number),
            };
        }
        query
    }};
}

impl Sql {
    pub(crate) async fn connect(store: Store, url: &str) -> Result<Self> {
        Ok(match store {
            #[cfg(feature = "postgres")]
            Store::Postgres => Self::Postgres(sqlx::PgConnection::connect(url).await?),
            #[cfg(feature = "mysql")]
            Store::MySql => {
                use std::str::FromStr;
                // The lab's server has no TLS, and checks its password without it.
                let url = url.replacen("mariadb://", "mysql://", 1);
                let options = sqlx::mysql::MySqlConnectOptions::from_str(&url)?;
                Self::Mysql(sqlx::MySqlConnection::connect_with(&options).await?)
            }
            #[cfg(feature = "sqlite")]
            Store::Sqlite => {
                use std::str::FromStr;
                let options = sqlx::sqlite::SqliteConnectOptions::from_str(url)?
                    .create_if_missing(true)
                    .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                    .synchronous(sqlx::sqlite::SqliteSynchronous::Normal)
                    .busy_timeout(std::time::Duration::from_secs(20));
                Self::Sqlite(sqlx::SqliteConnection::connect_with(&options).await?)
            }
            _ => {
                let why = format!("{store} is no database, or not compiled in");
                return Err(sqlx::Error::Configuration(why.into()).into());
            }
        })
    }

    /// Returns the statement with the database's own placeholders.
    fn text(&self, text: &str) -> String {
        #[cfg(feature = "postgres")]
        if matches!(self, Self::Postgres(_)) {
            let mut numbered = String::new();
            for (number, part) in text.split('?').enumerate() {
                if number > 0 {
                    numbered += &format!("${number}");
                }
                numbered += part;
            }
            return numbered;
        }
        text.to_owned()
    }

    /// Runs one statement. Returns the number of changed rows.
    pub(crate) async fn execute(&mut self, text: &str, args: &[SqlArg]) -> Result<u64> {
        let text = self.text(text);
        if args.is_empty() {
            return with!(self, connection => {
                let done = sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await?;
                Ok(done.rows_affected())
            });
        }
        with!(self, connection => {
            Ok(query!(text, args).execute(connection).await?.rows_affected())
        })
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        let begin = match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            #[allow(unreachable_patterns, reason = "there may be no other feature")]
            _ => "BEGIN",
        };
        self.execute(begin, &[]).await.map(|_| ())
    }

    /// The first column of the first row.
    pub(crate) async fn number(&mut self, text: &str, args: &[SqlArg]) -> Result<Option<i64>> {
        let text = self.text(text);
        with!(self, connection => {
            let row = query!(text, args).fetch_optional(connection).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }

    /// The first column of the first row.
    pub(crate) async fn string(&mut self, text: &str, args: &[SqlArg]) -> Result<Option<String>> {
        let text = self.text(text);
        with!(self, connection => {
            let row = query!(text, args).fetch_optional(connection).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }
}
