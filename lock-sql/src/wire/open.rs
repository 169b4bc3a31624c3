//! Connects to the database that a configuration names. On a server, the tables are made on first
//! use; a connection to SQLite makes them itself.

use std::time::Duration;

use lock_core::{Error, Result, deadline::jitter, keep::errors};
use tokio::time::sleep;

#[cfg(feature = "mysql")]
use crate::wire::mysql::MySql;
#[cfg(feature = "postgres")]
use crate::wire::postgres::Postgres;
#[cfg(feature = "sqlite")]
use crate::wire::sqlite::Sqlite;
use crate::{
    config::{SqlConfig, Target},
    error::{self, Refusal},
    layout::{
        dialect::Dialect,
        schema::{fill, schema},
    },
    wire::{
        database::Database,
        failure::Failure,
        given_client::{AnyPool, GivenPool},
        script::Script,
        turns::Rank,
    },
};

/// How long a client waits for one answer while it connects, unless a connection may take longer.
const LIMIT: Duration = Duration::from_millis(3500);
/// Most tries: clients that create the tables at the same time may get into each other's way.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Connects, and creates the tables if there are none.
pub(crate) async fn open(config: &SqlConfig) -> Result<Box<dyn Database>> {
    let database: Box<dyn Database> = match &config.target {
        #[cfg(feature = "sqlite")]
        Target::File { path } => Box::new(Sqlite::open(path.as_deref()).await?),
        #[cfg(feature = "sqlite")]
        Target::Pool(GivenPool(AnyPool::Sqlite(pool))) => Box::new(Sqlite::of_pool(pool).await?),
        #[cfg(feature = "mysql")]
        Target::MySql(server) => Box::new(MySql::new(server)?),
        #[cfg(feature = "mysql")]
        Target::Pool(GivenPool(AnyPool::MySql(pool))) => Box::new(MySql::of_pool(pool)?),
        #[cfg(feature = "postgres")]
        Target::Postgres(server) => Box::new(Postgres::new(server)?),
        #[cfg(feature = "postgres")]
        Target::Pool(GivenPool(AnyPool::Postgres(pool))) => Box::new(Postgres::of_pool(pool)),
        #[allow(unreachable_patterns, reason = "all features may be there")]
        _ => {
            let store = config.dialect().store();
            let what = format!("be used: build distlock-sql with feature {store:?}");
            return Err(errors::unsupported(store, what));
        }
    };
    if database.dialect() != Dialect::Sqlite {
        let connect = config.server().and_then(|server| server.timeouts.connect);
        prepare(&*database, connect.unwrap_or_default()).await?;
    }
    Ok(database)
}

/// Makes sure that the tables are there.
async fn prepare(database: &dyn Database, connect: Duration) -> Result<()> {
    // The answer needs time after the connection, too.
    let limit = LIMIT.max(connect * 2);
    let dialect = database.dialect();
    let (probe, tables, mut tries) = (Script(dialect).probe(), schema(dialect), 0);
    let is = |why: &sqlx::Error, refusal| Refusal::of(dialect, why) == refusal;
    loop {
        let missing = match database.run(Rank::Ask, &probe, limit).await {
            Ok((_, rows)) if rows.number(0).is_some_and(|count| count >= dialect.slots()) => {
                return Ok(());
            }
            // Another client has made the tables and not filled them, or not yet.
            Ok(_) => {
                let filled = database.run(Rank::Ask, &fill(dialect), LIMIT).await;
                return filled.map(drop).map_err(|failure| failure.unsent(dialect, "connect"));
            }
            Err(Failure::Refused(why))
                if is(&why, Refusal::NoTable) || is(&why, Refusal::Denied) =>
            {
                Failure::Refused(why)
            }
            Err(failure) => return Err(failure.unsent(dialect, "connect")),
        };
        match database.run(Rank::Ask, &tables, LIMIT).await {
            Err(Failure::Refused(why)) if is(&why, Refusal::Denied) => {
                return Err(match missing {
                    // They may be there: then it is not what is wrong that they cannot be made.
                    Failure::Refused(unread) if is(&unread, Refusal::Denied) => {
                        denied(dialect, unread, " (SELECT)")
                    }
                    _ => denied(dialect, why, ""),
                });
            }
            Err(failure) if tries == TRIES => return Err(failure.unsent(dialect, "connect")),
            Err(_) => sleep(jitter(PAUSE)).await,
            Ok(_) if tries == TRIES => return Err(missing.unsent(dialect, "connect")),
            Ok(_) => {}
        }
        tries += 1;
    }
}

fn denied(dialect: Dialect, why: sqlx::Error, right: &str) -> Error {
    let why = error::worded(dialect, why);
    let text = format!(
        "{why}{right}; the locks' tables are missing or closed to this user, who may not create \
         them: let somebody run what `distlock schema --store {store}:` prints (lock_sql::schema in \
         Rust), and grant this user SELECT, INSERT, UPDATE and DELETE",
        store = dialect.store()
    );
    errors::denied(dialect.store(), "connect", errors::reworded(text, why))
}
