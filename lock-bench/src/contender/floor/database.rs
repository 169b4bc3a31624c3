//! A connection of the bare client to the database of a URL.

use distlock::{StoreUrl, sql::Dialect};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, query_scalar, raw_sql};

use crate::Failure;

/// A connection to a database of one kind.
pub(in crate::contender) enum Connection {
    #[cfg(feature = "mysql")]
    MySql(sqlx::MySqlConnection),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgConnection),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqliteConnection),
}

/// The language of a database.
pub(in crate::contender) fn dialect(url: &StoreUrl) -> Result<Dialect, Failure> {
    Ok(Dialect::of_scheme(url.scheme()).ok_or("the URL is not a database's")?)
}

impl Connection {
    /// Connects to the database of a URL, with its login, and with TLS if both sides can.
    pub(in crate::contender) async fn open(url: &StoreUrl) -> Result<Self, Failure> {
        match dialect(url)? {
            #[cfg(feature = "mysql")]
            Dialect::MySql => {
                use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
                let (host, port, off) = address(url, 3306)?;
                let mut options = MySqlConnectOptions::new().host(&host).port(port);
                options = options.database(url.path());
                if let Some(user) = url.user() {
                    options = options.username(user);
                }
                if let Some(password) = url.password() {
                    options = options.password(password);
                }
                let mode = if off { MySqlSslMode::Disabled } else { MySqlSslMode::Preferred };
                let options = options.ssl_mode(mode).disable_statement_logging();
                Ok(Self::MySql(sqlx::MySqlConnection::connect_with(&options).await?))
            }
            #[cfg(feature = "postgres")]
            Dialect::Postgres => {
                use sqlx::postgres::{PgConnectOptions, PgSslMode};
                let (host, port, off) = address(url, 5432)?;
                let mut options = PgConnectOptions::new_without_pgpass().host(&host).port(port);
                options = options.password(url.password().unwrap_or_default());
                if let Some(user) = url.user() {
                    options = options.username(user);
                }
                if !url.path().is_empty() {
                    options = options.database(url.path());
                }
                let mode = if off { PgSslMode::Disable } else { PgSslMode::Prefer };
                let options = options.ssl_mode(mode).disable_statement_logging();
                Ok(Self::Postgres(sqlx::PgConnection::connect_with(&options).await?))
            }
            #[cfg(feature = "sqlite")]
            Dialect::Sqlite => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file(url)?);
                let options = options.create_if_missing(true).disable_statement_logging();
                let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
                let setup = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
                raw_sql(setup).fetch_all(&mut connection).await?;
                Ok(Self::Sqlite(connection))
            }
            _ => Err("this database is not compiled in".into()),
        }
    }

    /// Runs statements in one message.
    pub(in crate::contender) async fn run(&mut self, script: String) -> Result<(), Failure> {
        let script = raw_sql(AssertSqlSafe(script));
        match self {
            #[cfg(feature = "mysql")]
            Self::MySql(connection) => drop(script.fetch_all(connection).await?),
            #[cfg(feature = "postgres")]
            Self::Postgres(connection) => drop(script.fetch_all(connection).await?),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(connection) => drop(script.fetch_all(connection).await?),
        }
        Ok(())
    }

    /// The first column of a statement's row.
    pub(in crate::contender) async fn number(
        &mut self,
        query: &str,
    ) -> Result<Option<i64>, Failure> {
        let query = AssertSqlSafe(query);
        Ok(match self {
            #[cfg(feature = "mysql")]
            Self::MySql(connection) => {
                query_scalar::<sqlx::MySql, _>(query).fetch_one(connection).await?
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(connection) => {
                query_scalar::<sqlx::Postgres, _>(query).fetch_one(connection).await?
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(connection) => {
                query_scalar::<sqlx::Sqlite, _>(query).fetch_one(connection).await?
            }
        })
    }
}

/// Bytes as text in which there is nothing to escape.
pub(in crate::contender) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file of a URL.
#[cfg(feature = "sqlite")]
pub(in crate::contender) fn file(url: &StoreUrl) -> Result<std::path::PathBuf, Failure> {
    let path = distlock::sql::SqlConfig::from_url(url)?.path();
    Ok(path.ok_or("the place of the user's own file is not known")?)
}

/// The host without the brackets of IPv6, the port, and whether TLS is off.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn address(url: &StoreUrl, port: u16) -> Result<(String, u16, bool), Failure> {
    let hosts = url.hosts(port);
    let (host, port) = hosts[0].rsplit_once(':').ok_or("the host has no port")?;
    let off = url.options().text("tls") == Some("off");
    Ok((host.trim_matches(['[', ']']).to_owned(), port.parse()?, off))
}
