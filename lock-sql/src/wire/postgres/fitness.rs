//! Whether a server can keep locks, by its own report.

use sqlx::{Row as _, postgres::PgRow};

use crate::{
    error,
    layout::dialect::Dialect,
    wire::{failure::Failure, verdict::Origin},
};

/// Asks for the state that shows whether a server can keep locks.
pub(super) const STATE: &str = "SELECT pg_is_in_recovery()::text, current_setting('transaction_read_only'), \
    current_setting('distlock.direct', true)";

/// Asks where the data of a primary comes from. The first digits of the name of a file of its log
/// are its timeline.
pub(super) const ORIGIN: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()), \
    left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// Reads the answer to [`ORIGIN`].
pub(super) fn origin(row: &PgRow) -> sqlx::Result<Origin> {
    let (system, timeline): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let decode = |why: std::num::ParseIntError| sqlx::Error::Decode(why.into());
    Ok(Origin {
        system: system.parse().map_err(decode)?,
        timeline: u32::from_str_radix(&timeline, 16).map_err(decode)?,
    })
}

/// A setting in the start-up of a connection. A pooler does not pass it on.
pub(super) const DIRECT: (&str, &str) = ("distlock.direct", "yes");

/// Why a pooler is refused, and what to do.
pub(super) const POOLED: &str = "a pooler of connections is between, such as PgBouncer: it hands the statements of \
    one session to several, so that pushes and settings get lost; name the server itself \
    (a client has few connections, and shares them among all its locks)";

/// Checks by the answer to [`STATE`] that a server can keep locks. The outer error is about an
/// answer that makes no sense.
pub(super) fn is_fit(row: Option<&PgRow>) -> sqlx::Result<Result<(), Failure>> {
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    let (recovery, read_only): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let direct: Option<String> = row.try_get(2)?;
    if direct.as_deref() != Some(DIRECT.1) {
        return Ok(Err(Failure::Barred(error::unfit(Dialect::Postgres, POOLED))));
    }
    let why = match (recovery.as_str(), read_only.as_str()) {
        ("false", "off") => return Ok(Ok(())),
        ("false", _) => "the server is read-only (default_transaction_read_only)",
        _ => "the server is a standby, which takes no writes",
    };
    Ok(Err(Failure::down(why)))
}
