//! Servers for the tests, from pools.

use std::ops::Deref;

use lock_lab::{Lent, MariaDb, Pool, Postgres, Server};
use lock_sql::Dialect;

/// A private server of one of the two kinds.
pub enum Database {
    /// For both MySQL and MariaDB.
    MariaDb(Own<MariaDb>),
    /// PostgreSQL.
    Postgres(Own<Postgres>),
}

/// A server that a test has for itself.
pub struct Own<S: 'static> {
    server: Lent<S>,
    /// The length of its log when the test got it.
    log: usize,
}

impl<S: Deref<Target = Server>> From<Lent<S>> for Own<S> {
    fn from(server: Lent<S>) -> Self {
        Self { log: server.log().len(), server }
    }
}

impl<S> Deref for Own<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.server
    }
}

impl From<MariaDb> for Database {
    fn from(server: MariaDb) -> Self {
        Self::MariaDb(Lent::from(server).into())
    }
}

impl From<Postgres> for Database {
    fn from(server: Postgres) -> Self {
        Self::Postgres(Lent::from(server).into())
    }
}

impl Database {
    /// Takes an empty server without special settings. A test that changes them must
    /// [`spoil`](Self::spoil) it.
    pub async fn start(dialect: Dialect) -> Self {
        static POSTGRES: Pool<Postgres> = Pool::new();
        static MARIADB: Pool<MariaDb> = Pool::new();
        match dialect {
            Dialect::Postgres => {
                let server = POSTGRES.lend(Postgres::empty, Postgres::start).await;
                Self::Postgres(server.unwrap().into())
            }
            _ => {
                let server = MARIADB.lend(MariaDb::empty, MariaDb::start).await;
                Self::MariaDb(server.unwrap().into())
            }
        }
    }

    /// Keeps the server from the tests after this one.
    pub fn spoil(&self) {
        match self {
            Self::MariaDb(own) => own.server.spoil(),
            Self::Postgres(own) => own.server.spoil(),
        }
    }

    /// Kills the server. No other test gets it.
    pub fn kill(&self) {
        self.spoil();
        Server::kill(self);
    }

    /// The lines of the log since the test has the server.
    pub fn log(&self) -> String {
        let log = Server::log(self);
        match self {
            Self::MariaDb(own) => log[own.log..].to_owned(),
            Self::Postgres(own) => log[own.log..].to_owned(),
        }
    }

    /// Runs statements as the owner of the database.
    pub async fn sql(&self, statements: &str) -> String {
        let answer = match self {
            Self::MariaDb(server) => server.sql(statements).await,
            Self::Postgres(server) => server.sql(statements).await,
        };
        answer.unwrap()
    }

    /// Runs statements as a user with all rights.
    pub async fn sql_as_admin(&self, statements: &str) -> String {
        let answer = match self {
            Self::MariaDb(server) => server.sql_as_admin(statements).await,
            Self::Postgres(server) => server.sql_as_admin(statements).await,
        };
        answer.unwrap()
    }

    /// The number of entries.
    pub async fn entries(&self) -> u64 {
        let count = self.sql("SELECT count(*) FROM distlock_v1_entries").await;
        count.trim().parse().unwrap()
    }

    /// The same URL with another login.
    pub fn url_as(&self, login: &str) -> String {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").unwrap();
        let (_, host) = rest.rsplit_once('@').unwrap();
        format!("{scheme}://{login}@{host}")
    }
}

impl Deref for Database {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::MariaDb(own) => &own.server,
            Self::Postgres(own) => &own.server,
        }
    }
}
