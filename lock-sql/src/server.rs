//! What the servers have in common: the tables are made on first use.

use std::time::Duration;

use lock_core::{Error, Result, deadline::jitter};
use tokio::time::sleep;

use crate::{
    connections::Failure,
    database::Database,
    dialect::Dialect,
    error::{self, Refusal},
    schema,
    turns::Rank,
};

/// How long a client waits for one answer while it connects.
const LIMIT: Duration = Duration::from_millis(3500);
/// How many scripts of a client are on their way at the most: see [`Turns::new`]. Two are kept for
/// renewals, and one of them for those only.
///
/// [`Turns::new`]: crate::turns::Turns::new
pub(crate) const PLACES: [usize; 3] = [10, 9, 8];
/// How often clients that create the tables at the same time may get into each other's way.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Makes sure that the tables are there.
///
/// # Errors
///
/// As [`SqlLock::connect`](crate::SqlLock::connect).
pub(crate) async fn prepare(database: &Database) -> Result<()> {
    let dialect = database.dialect();
    let (probe, schema) = (schema::probe(dialect), schema::schema(dialect));
    let mut tries = 0;
    loop {
        let missing = match database.run(Rank::Ask, &probe, LIMIT).await {
            Ok((_, rows)) if rows.first().is_some_and(|row| row.token >= dialect.slots()) => {
                return Ok(());
            }
            // Somebody has made the tables and not filled them, or not yet.
            Ok(_) => {
                let filled = database.run(Rank::Ask, &schema::fill(dialect), LIMIT).await;
                return filled.map(drop).map_err(|failure| failure.opening(dialect));
            }
            Err(failure) => failure,
        };
        if !matches!(refusal(dialect, &missing), Some(Refusal::NoTable | Refusal::Denied)) {
            return Err(missing.opening(dialect));
        }
        match database.run(Rank::Ask, &schema, LIMIT).await {
            Err(failure) if refusal(dialect, &failure) == Some(Refusal::Denied) => {
                return Err(denied(dialect, failure));
            }
            Err(failure) if tries == TRIES => return Err(failure.opening(dialect)),
            Err(_) => sleep(jitter(PAUSE)).await,
            Ok(_) if tries == TRIES => return Err(missing.opening(dialect)),
            Ok(_) => {}
        }
        tries += 1;
    }
}

/// What the database said, once there was a connection.
fn refusal(dialect: Dialect, failure: &Failure) -> Option<Refusal> {
    let Failure::Refused(error) = failure else { return None };
    Some(Refusal::of(dialect, error.as_database_error()?))
}

fn denied(dialect: Dialect, failure: Failure) -> Error {
    let Failure::Refused(why) = failure else { return failure.opening(dialect) };
    let source = format!(
        "{}; the locks' tables are missing or closed to this user, who may not create them: let \
         somebody run what `distlock schema --store {store}:` prints (lock_sql::schema in Rust), and grant \
         this user SELECT, INSERT, UPDATE and DELETE",
        error::told(dialect, why),
        store = dialect.store()
    );
    Error::Denied { store: dialect.store(), op: "connect", source: source.into() }
}
