//! PostgreSQL and MariaDB: rights, lost replies, pushes, closing, TLS, and what a lock costs.

mod burst;
mod cautions;
mod closing;
mod costs;
mod database;
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
mod tls;
mod unfit;
mod vain;

use std::{sync::Arc, time::Duration};

use lock_core::{Connect, Locks};
use lock_sql::{SqlConfig, SqlLock};

pub use self::database::Database;
pub use crate::support::{connect, eventually};

/// Time for which a machine may be too busy for a new connection.
const BUSY: Duration = Duration::from_secs(20);

/// Connects to a server, and returns [`Locks`].
pub async fn locks(url: &str) -> Locks {
    let connecting = Connect::new(url, |url| {
        Box::pin(async move {
            let config = SqlConfig::from_url(&url)?;
            Ok(Arc::new(SqlLock::connect(config).await?) as _)
        })
    });
    connecting.retry(BUSY).await.unwrap()
}

/// Makes one test of each function on both servers.
macro_rules! on_both {
    (in one thread: $($check:ident),+ $(,)?) => {
        crate::servers::on_both!(@Postgres postgres [] $($check)+);
        crate::servers::on_both!(@MySql mariadb [] $($check)+);
    };
    ($($check:ident),+ $(,)?) => {
        crate::servers::on_both!(@Postgres postgres [flavor = "multi_thread", worker_threads = 2] $($check)+);
        crate::servers::on_both!(@MySql mariadb [flavor = "multi_thread", worker_threads = 2] $($check)+);
    };
    (@$dialect:ident $server:ident $runtime:tt $($check:ident)+) => {
        mod $server {
            $(crate::servers::on_both!(@$dialect $runtime $check);)+
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
