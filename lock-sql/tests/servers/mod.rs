//! PostgreSQL and MariaDB: rights, lost replies, pushes, closing, TLS, and what a lock costs.

mod burst;
mod cautions;
mod closing;
mod costs;
mod environment;
mod fenced;
mod floor;
mod grants;
mod hosts;
mod isolation;
mod limits;
mod logins;
mod own_client;
mod pushes;
mod read_only;
mod replies;
mod rights;
mod rotation;
mod server_name;
mod stall;
mod storm;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod unfit;
mod vain;

use std::ops::Deref;

use lock_core::Locks;
use lock_lab::{MariaDb, Postgres, Server};
use lock_sql::Dialect;

pub use crate::support::{connect, eventually};

/// A private server of one of the two kinds.
pub enum Database {
    /// For both MySQL and MariaDB.
    MariaDb(MariaDb),
    /// PostgreSQL.
    Postgres(Postgres),
}

impl Database {
    /// Starts a server.
    pub async fn start(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Postgres => Self::Postgres(Postgres::start().await.unwrap()),
            _ => Self::MariaDb(MariaDb::start().await.unwrap()),
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
            Self::MariaDb(server) => server,
            Self::Postgres(server) => server,
        }
    }
}

/// Connects to a server, and returns [`Locks`].
pub async fn locks(url: &str) -> Locks {
    Locks::new(connect(url).await.unwrap())
}

/// Makes one test of each function on both servers.
macro_rules! on_both {
    (in one thread: $($check:ident),+ $(,)?) => {
        crate::on_both!(@Postgres postgres [] $($check)+);
        crate::on_both!(@MySql mariadb [] $($check)+);
    };
    ($($check:ident),+ $(,)?) => {
        crate::on_both!(@Postgres postgres [flavor = "multi_thread", worker_threads = 2] $($check)+);
        crate::on_both!(@MySql mariadb [flavor = "multi_thread", worker_threads = 2] $($check)+);
    };
    (@$dialect:ident $server:ident $runtime:tt $($check:ident)+) => {
        mod $server {
            $(crate::on_both!(@$dialect $runtime $check);)+
        }
    };
    (@$dialect:ident [$($runtime:tt)*] $check:ident) => {
        #[tokio::test($($runtime)*)]
        async fn $check() {
            super::$check(lock_sql::Dialect::$dialect).await;
        }
    };
}
use on_both;
