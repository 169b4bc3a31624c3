//! Which database, and how to use it.

use std::{path::PathBuf, time::Duration};

use lock_core::{
    Result, StoreUrl,
    keep::limits::{DEFAULT_TTL, LONGEST_TTL},
};

#[cfg(feature = "sqlite")]
use crate::wire::{given_client::AnyPool, sqlite};
pub(crate) mod server;

use self::server::{Pooler, Server};
use crate::{layout::dialect::Dialect, wire::given_client::GivenPool};

/// The allowed TTLs. Locks with shorter ones would be lost in a busy disk's pauses.
pub(crate) const TTL: std::ops::RangeInclusive<Duration> = Duration::from_millis(500)..=LONGEST_TTL;

/// Where the database is.
///
/// With the feature `serde` it is read from a configuration file: the fields by their names, `ttl`
/// as in a URL. `Debug` does not show the password.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct SqlConfig {
    /// The file or the server. Default: the user's own file.
    pub target: Target,
    /// The TTL of locks that name none, 500 ms to 24 h. Default: 15 s.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub ttl: Option<Duration>,
}

/// A file or a server: in a configuration file `target.file`, `target.mysql` or `target.postgres`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Target {
    /// SQLite.
    File {
        /// The file's path. Default: `distlock/locks.db` in the user's state directory, which
        /// excludes this user's processes only.
        path: Option<PathBuf>,
    },
    /// MySQL or MariaDB.
    MySql(Server),
    /// PostgreSQL.
    Postgres(Server),
    /// The database of a pool.
    #[cfg_attr(feature = "serde", serde(skip))]
    Pool(GivenPool),
}

impl SqlConfig {
    /// SQLite in a file, or in the user's own one; everything else by default.
    pub fn file(path: Option<PathBuf>) -> Self {
        Self::new(Target::File { path })
    }

    /// A database of MySQL or MariaDB; everything else by default.
    pub fn mysql(server: Server) -> Self {
        Self::new(Target::MySql(server))
    }

    /// A database of PostgreSQL; everything else by default.
    pub fn postgres(server: Server) -> Self {
        Self::new(Target::Postgres(server))
    }

    /// The database of a pool (a `&sqlx::PgPool`, `&MySqlPool` or `&SqlitePool`), with its login,
    /// TLS and other options; everything else by default. Nothing is sent.
    ///
    /// The locks make connections of their own; [the front page](crate#your-own-client) says why,
    /// and which of the pool's options count.
    ///
    /// ```no_run
    /// # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
    /// use std::time::Duration;
    /// use distlock::{Locks, sql::{SqlConfig, SqlLock, client::sqlite::SqlitePool}};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = SqlitePool::connect("sqlite:/var/lib/shop/shop.db").await?;
    /// let config = SqlConfig::from_client(&pool).ttl(Duration::from_secs(5));
    /// let locks = Locks::new(SqlLock::connect(config).await?);
    /// # Ok(()) }
    /// ```
    pub fn from_client(pool: impl Into<GivenPool>) -> Self {
        Self::new(Target::Pool(pool.into()))
    }

    /// Sets [`ttl`](Self#structfield.ttl), 500 ms to 24 h.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    fn new(target: Target) -> Self {
        Self { target, ttl: None }
    }

    /// Reads a URL; `docs/stores/sql.md` lists its options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if it is not a URL of this driver, or
    /// lacks MySQL's database. [`Error::InvalidOption`](lock_core::Error::InvalidOption) for an
    /// unknown or wrong option, and for several hosts without `failover=managed`.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let mut options = url.options();
        let ttl = options.duration("ttl")?;
        let dialect = Dialect::of_scheme(url.scheme());
        let expected = || url.error("expected sqlite:PATH, mysql://.. or postgres://..");
        let target = match dialect.ok_or_else(expected)? {
            Dialect::Sqlite if url.has_authority() => Target::File { path: Some(rooted(url)?) },
            Dialect::Sqlite => {
                if url.path() == ":memory:" {
                    return Err(url.error(
                        "it would be a file of this name: for locks in memory write `memory:`",
                    ));
                }
                let path = Some(url.path()).filter(|path| !path.is_empty());
                Target::File { path: path.map(PathBuf::from) }
            }
            Dialect::MySql => {
                let server = Server::from_url(url, &mut options, 3306)?;
                server.check_direct()?;
                if server.database.is_none() {
                    return Err(url.error("expected mysql://HOST/DATABASE"));
                }
                Target::MySql(server)
            }
            Dialect::Postgres => Target::Postgres(Server::from_url(url, &mut options, 5432)?),
        };
        options.finish()?;
        Ok(Self { target, ttl })
    }

    pub(crate) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL)
    }

    /// The path of the SQLite file, which need not exist. `None` for a server, and if the place of
    /// the user's own file is not known.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.target {
            #[cfg(feature = "sqlite")]
            Target::File { path } => sqlite::path(path.as_deref()).ok(),
            #[cfg(feature = "sqlite")]
            Target::Pool(GivenPool(AnyPool::Sqlite(pool))) => {
                sqlite::path(Some(pool.connect_options().get_filename())).ok()
            }
            _ => None,
        }
    }

    /// The server; `None` for a file and for a pool.
    pub(crate) fn server(&self) -> Option<&Server> {
        match &self.target {
            Target::MySql(server) | Target::Postgres(server) => Some(server),
            Target::File { .. } | Target::Pool(_) => None,
        }
    }

    /// What weakens locks by this configuration, and in the place of the file. Of a server's pool,
    /// the program has chosen the options.
    pub(crate) fn caution(&self) -> Option<String> {
        #[cfg(feature = "sqlite")]
        if let Some(path) = self.path() {
            return sqlite::caution(&path);
        }
        self.server()?.open_login()
    }

    /// Whether another server may take over.
    pub(crate) fn is_managed(&self) -> bool {
        self.server().is_some_and(|server| server.failover.is_some())
    }

    /// Whether the server pushes: PostgreSQL, unless a pooler lends its sessions for a transaction.
    pub(crate) fn is_pushed(&self) -> bool {
        let pooler = self.server().and_then(|server| server.pooler);
        self.dialect() == Dialect::Postgres && pooler != Some(Pooler::Transaction)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.target {
            Target::File { .. } => Dialect::Sqlite,
            Target::MySql(_) => Dialect::MySql,
            Target::Postgres(_) => Dialect::Postgres,
            Target::Pool(pool) => pool.dialect(),
        }
    }
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self::file(None)
    }
}

/// The file of a URL with two slashes: a path from the root, as in `sqlite:///var/locks.db`.
fn rooted(url: &StoreUrl) -> Result<PathBuf> {
    if url.has_host() || url.user().is_some() || url.path().is_empty() {
        return Err(url.error("a file has no host: write sqlite:PATH, or sqlite: alone"));
    }
    Ok(PathBuf::from(format!("/{}", url.path())))
}

#[cfg(test)]
mod tests {
    use lock_core::{Encryption, Pem, Secret, Tls, User};

    use super::*;
    use crate::config::server::Failover;

    fn config(url: &str) -> Result<SqlConfig> {
        SqlConfig::from_url(&StoreUrl::parse(url)?)
    }

    #[test]
    fn everything_can_be_said_in_a_url() {
        let c = config(
            "postgresql://me:s@[::1]:7000,b/locks?ttl=2s&tls=verify&ca=/ca.pem&cert=/c&key=/k\
             &connect_timeout=2s&request_timeout=1s&failover=managed",
        )
        .unwrap();
        let Target::Postgres(server) = &c.target else { panic!("{c:?}") };
        assert_eq!(server.hosts, ["[::1]:7000", "b:5432"]);
        assert_eq!(server.user, Some("me".into()));
        assert_eq!(server.password, Some(Secret::text("s")));
        assert_eq!(server.database.as_deref(), Some("locks"));
        assert_eq!(server.tls, Tls::verify().ca("/ca.pem").cert("/c").key("/k"));
        assert_eq!(server.timeouts.connect, Some(Duration::from_secs(2)));
        assert_eq!(server.timeouts.request, Some(Duration::from_secs(1)));
        assert_eq!(server.failover, Some(Failover::Managed));
        assert_eq!(c.ttl, Some(Duration::from_secs(2)));
        let Target::MySql(server) =
            config("mysql://h/db?user_env=U&password_file=/p").unwrap().target
        else {
            panic!("no server")
        };
        assert_eq!(server.user, Some(User::env("U")));
        assert_eq!(server.password, Some(Secret::file("/p")));
        assert_eq!(server.tls.mode, Encryption::Prefer);
        let Target::File { path } = config("sqlite:/var/lib/a%20b.db").unwrap().target else {
            panic!("no file")
        };
        assert_eq!(path, Some(PathBuf::from("/var/lib/a b.db")));
        assert!(matches!(config("sqlite:").unwrap().target, Target::File { path: None }));
        assert!(matches!(config("mariadb://h/db").unwrap().target, Target::MySql(_)));
    }

    #[test]
    fn a_pooler_that_lends_sessions_for_a_transaction_is_polled() {
        for (url, is_pushed) in [
            ("postgres://h", true),
            ("postgres://h?pooler=session", true),
            ("postgres://h?pooler=transaction", false),
            ("mysql://h/db", false),
        ] {
            assert_eq!(config(url).unwrap().is_pushed(), is_pushed, "{url}");
        }
    }

    #[test]
    fn bad_urls_are_refused_and_say_why() {
        for (url, word) in [
            ("sqlite://x/y", "sqlite:PATH"),
            ("sqlite://", "sqlite:PATH"),
            ("sqlite::memory:", "`memory:`"),
            ("mysql://h", "DATABASE"),
            ("mysql://a,b/db", "failover=managed"),
            ("mysql://a,b/db?failover=yes", "managed"),
            ("mysql://h/db?pooler=session", "MySQL"),
            ("postgres://h?pooler=statement", "session, transaction"),
            ("postgres://h?pooler=session&failover=managed", "pooler"),
            ("sqlite:x?ttll=1s", "ttll"),
            ("sqlite:x?tls=off", "tls"),
            ("postgres://h?ttl=1", "ttl"),
            ("postgres://h?tls=no", "off, verify, prefer"),
            ("postgres://h?ca=x", "tls=verify"),
            ("postgres://h?tls=verify&server_name=i", "/etc/hosts"),
            ("postgres://h?server_name=i", "/etc/hosts"),
            ("postgres://h?connect_timeout=1ms", "100ms to 1m"),
            ("oracle://h", "sqlite:PATH"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let mut c = config("mysql://me:s3cret@h/db?tls=verify").unwrap();
        if let Target::MySql(server) = &mut c.target {
            server.tls.key = Some(Pem::Text("s3cret".to_owned()));
        }
        assert!(!format!("{c:?}").contains("s3cret"));
    }
}
