//! PostgreSQL and MariaDB: rights, lost replies, pushes, closing, TLS, poolers, what a lock costs.

mod alone;
#[path = "../../../tests/shared/beat.rs"]
mod beat;
mod blocked;
#[path = "../../../tests/shared/bounded.rs"]
mod bounded;
mod burst;
mod cautions;
mod certificates;
mod closing;
mod commits;
mod connections;
mod costs;
mod counters;
mod database;
mod environment;
mod fenced;
mod floor;
mod grants;
mod hosts;
mod isolation;
mod late;
mod limits;
mod logins;
mod own_client;
mod pooler;
mod prepared;
mod pushes;
mod read_only;
mod refusals;
mod replies;
mod restored;
mod rights;
mod rotation;
mod session;
mod sizes;
mod stall;
mod storm;
mod tls;
#[path = "../../../tests/shared/undisturbed.rs"]
mod undisturbed;
mod unfit;
mod vain;

use std::time::Duration;

use lock_core::{Clock, Error, Locks};

pub use self::database::Database;
pub use crate::support::{connect, eventually};

/// The shortest time limit of a connect.
const LIMIT: Duration = Duration::from_secs(1);

/// Connects to a server, and returns [`Locks`]. Tries again only where the time was over: a machine
/// may be too busy for a new connection.
pub async fn locks(url: &str) -> Locks {
    for _ in 0..5 {
        let start = Clock::Boot.now();
        match connect(url).await {
            Ok(client) => return Locks::new(client),
            Err(error @ Error::Unavailable { .. }) if Clock::Boot.now().since(start) >= LIMIT => {
                println!("connects again: {error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no connect in time");
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
