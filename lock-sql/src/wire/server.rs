//! Common to both kinds of server: the tables are made on first use.

use std::time::Duration;

use lock_core::{Error, Result, deadline::jitter, keep::errors};
use tokio::time::sleep;

use crate::{
    error::{self, Refusal},
    layout::{
        dialect::Dialect,
        schema::{self, Grants},
    },
    wire::{database::Database, failure::Failure, script::Script, turns::Rank},
};

/// How long a client waits for one answer while it connects, unless a connection may take longer.
const LIMIT: Duration = Duration::from_millis(3500);
/// Most tries: clients that create the tables at the same time may get into each other's way.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Makes sure that the tables are there. Returns whether they have the column `granted`.
///
/// # Errors
///
/// Same as [`SqlLock::connect`](crate::SqlLock::connect).
pub(crate) async fn prepare(database: &dyn Database, connect: Duration) -> Result<Grants> {
    // The answer needs time after the connection, too.
    let limit = LIMIT.max(connect * 2);
    let (dialect, tables) = (database.dialect(), schema::tables(database.dialect()));
    let (mut tries, mut grants) = (0, Grants::Dated);
    loop {
        let missing = match database.run(Rank::Ask, &Script(dialect, grants).probe(), limit).await {
            Ok((_, rows)) if rows.number(0).is_some_and(|count| count >= dialect.slots()) => {
                return Ok(grants);
            }
            // Another client has made the tables and not filled them, or not yet.
            Ok(_) => {
                let filled = database.run(Rank::Ask, &schema::fill(dialect), LIMIT).await;
                return filled
                    .map(|_| grants)
                    .map_err(|failure| failure.unsent(dialect, "connect"));
            }
            Err(failure) => failure,
        };
        if grants == Grants::Dated && refusal(dialect, &missing) == Some(Refusal::NoColumn) {
            grants = match tries {
                TRIES => Grants::Undated,
                _ => add_column(database).await,
            };
            tries += 1;
            continue;
        }
        if !matches!(refusal(dialect, &missing), Some(Refusal::NoTable | Refusal::Denied)) {
            return Err(missing.unsent(dialect, "connect"));
        }
        match database.run(Rank::Ask, &tables, LIMIT).await {
            Err(failure) if refusal(dialect, &failure) == Some(Refusal::Denied) => {
                return Err(denied(dialect, failure));
            }
            Err(failure) if tries == TRIES => return Err(failure.unsent(dialect, "connect")),
            Err(_) => sleep(jitter(PAUSE)).await,
            Ok(_) if tries == TRIES => return Err(missing.unsent(dialect, "connect")),
            Ok(_) => {}
        }
        tries += 1;
    }
}

/// Adds the column to tables that an earlier version made, where no client has to wait long for
/// that. If it cannot, the client does without the column until it is there.
async fn add_column(database: &dyn Database) -> Grants {
    let dialect = database.dialect();
    let Some(add) = schema::add_granted(dialect) else { return Grants::Undated };
    match database.run(Rank::Ask, &add, LIMIT).await {
        Ok(_) => Grants::Dated,
        Err(failure) => match refusal(dialect, &failure) {
            // Another client has added it at the same time.
            Some(Refusal::SameColumn) => Grants::Dated,
            _ => Grants::Undated,
        },
    }
}

/// Why the database refused, if there was a connection.
fn refusal(dialect: Dialect, failure: &Failure) -> Option<Refusal> {
    let Failure::Refused(error) = failure else { return None };
    Some(Refusal::of(dialect, error.as_database_error()?))
}

fn denied(dialect: Dialect, failure: Failure) -> Error {
    let Failure::Refused(why) = failure else { return failure.unsent(dialect, "connect") };
    let source = format!(
        "{}; the locks' tables are missing or closed to this user, who may not create them: let \
         somebody run what `distlock schema --store {store}:` prints (lock_sql::schema in Rust), and grant \
         this user SELECT, INSERT, UPDATE and DELETE",
        error::told(dialect, why),
        store = dialect.store()
    );
    errors::denied(dialect.store(), "connect", source)
}
