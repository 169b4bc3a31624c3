//! Common to both kinds of server: the tables are made on first use.

use std::time::Duration;

use lock_core::{Error, Result, deadline::jitter, keep::errors};
use tokio::time::sleep;

use crate::{
    error::{self, Refusal},
    layout::{
        dialect::Dialect,
        schema::{fill, schema},
    },
    wire::{database::Database, failure::Failure, script::Script, turns::Rank},
};

/// How long a client waits for one answer while it connects, unless a connection may take longer.
const LIMIT: Duration = Duration::from_millis(3500);
/// Most tries: clients that create the tables at the same time may get into each other's way.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Makes sure that the tables are there.
pub(crate) async fn prepare(database: &dyn Database, connect: Duration) -> Result<()> {
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
                return Err(denied(dialect, why));
            }
            Err(failure) if tries == TRIES => return Err(failure.unsent(dialect, "connect")),
            Err(_) => sleep(jitter(PAUSE)).await,
            Ok(_) if tries == TRIES => return Err(missing.unsent(dialect, "connect")),
            Ok(_) => {}
        }
        tries += 1;
    }
}

fn denied(dialect: Dialect, why: sqlx::Error) -> Error {
    let why = error::worded(dialect, why);
    let text = format!(
        "{why}; the locks' tables are missing or closed to this user, who may not create them: let \
         somebody run what `distlock schema --store {store}:` prints (lock_sql::schema in Rust), and grant \
         this user SELECT, INSERT, UPDATE and DELETE",
        store = dialect.store()
    );
    errors::denied(dialect.store(), "connect", errors::reworded(text, why))
}
