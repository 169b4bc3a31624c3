//! A commit that is only made while a lock is held.

use std::time::Duration;

use lock_core::{
    BoxFuture, Clock, Effect, Error, Held, Result,
    keep::errors::{invalid, unavailable, unsupported},
};
use sqlx::{Database, Transaction};

use crate::{
    error::{Refusal, not_sent},
    layout::dialect::Dialect,
    lease::SqlLease,
    wire::{
        given_transaction::{AnyTransaction, GivenTransaction},
        hosts::Link,
    },
};

/// The operation's name in errors.
const COMMIT: &str = "commit";
/// How long the lock's own client is asked why the check has not found the lock.
const ASKED: Duration = Duration::from_secs(2);
const UNKNOWN: &str = "the check has not found the lock, and its own client gets no answer";
/// What another store cannot do.
const OTHER_STORE: &str = "commit a transaction of SQL together with its lock";
/// What is wrong with a transaction that does not find the entry of a lock that is held.
const ELSEWHERE: &str = "one that does not find the lock";
const ALLOWED: &str = "a transaction of the database and the schema that the locks are in, begun \
    after the lock was granted";

/// A commit that is only made while the lock is held. [`Held`], to which a
/// [`LockGuard`](lock_core::LockGuard) derefs, has it.
///
/// ```no_run
/// # #[cfg(feature = "postgres")] {
/// # mod distlock { pub use lock_core::*; pub use lock_sql as sql; }
/// use distlock::{LockGuard, sql::{CommitHeld, client::{self, PgPool}}};
///
/// # async fn example(guard: LockGuard, pool: PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut transaction = pool.begin().await?;
/// client::query("UPDATE stock SET amount = amount - 1").execute(&mut *transaction).await?;
/// guard.commit(transaction).await?; // rolled back if the lock is lost
/// # Ok(()) }
/// # }
/// ```
pub trait CommitHeld {
    /// Commits a transaction of the database that the lock is in if the lock is still held, and
    /// rolls it back otherwise. No other client is granted the lock before the commit: no late
    /// holder commits.
    ///
    /// The database decides, by a last statement, [`SqlLease::check_sql`]. It locks the lock's row
    /// from then to the commit alone, so a transaction that is open for long stops no renewal. (On
    /// SQLite a transaction that writes does, at all times.) Begin the transaction after the lock
    /// was granted, or it may have read what an earlier holder has changed since.
    ///
    /// A transaction within another one, by a savepoint, keeps the row locked until the outer one
    /// ends; on SQLite it keeps the file from all other clients for so long.
    ///
    /// From `REPEATABLE READ` on, PostgreSQL's snapshot has an older expiry. So a lock that has
    /// expired counts as held as long as no other client was granted it.
    ///
    /// # Errors
    ///
    /// The transaction is rolled back, but after [`Error::Unavailable`] with
    /// [`Effect::Unknown`]: the commit itself was not answered.
    ///
    /// - [`Error::Lost`] if the lock is lost.
    /// - [`Error::InvalidOption`] if the transaction is of another database or schema, or if its
    ///   snapshot is older than the grant (PostgreSQL from `REPEATABLE READ` on).
    /// - [`Error::Unsupported`] if the lock is in a store of another kind.
    /// - [`Error::Unavailable`], [`Error::Denied`] or [`Error::Rejected`] if the database does not
    ///   answer or refuses: the user needs `SELECT` and `UPDATE` on `distlock_v1_entries`, and a
    ///   constraint may be checked by the commit only.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls the transaction back, as dropping a transaction does, unless the
    /// commit was sent: then its effect is unknown.
    fn commit<'a>(
        &'a self,
        transaction: impl Into<GivenTransaction<'a>>,
    ) -> BoxFuture<'a, Result<()>>;
}

impl CommitHeld for Held {
    fn commit<'a>(
        &'a self,
        transaction: impl Into<GivenTransaction<'a>>,
    ) -> BoxFuture<'a, Result<()>> {
        let GivenTransaction(transaction) = transaction.into();
        match transaction {
            #[cfg(feature = "sqlite")]
            AnyTransaction::Sqlite(open) => Box::pin(commit(self, open)),
            #[cfg(feature = "mysql")]
            AnyTransaction::MySql(open) => Box::pin(commit(self, open)),
            #[cfg(feature = "postgres")]
            AnyTransaction::Postgres(open) => Box::pin(commit(self, open)),
        }
    }
}

async fn commit<D>(held: &Held, mut open: Transaction<'_, D>) -> Result<()>
where
    D: Database,
    D::Connection: Link,
{
    let dialect = <D::Connection as Link>::DIALECT;
    let checked = match held.lease_as::<SqlLease>() {
        Some(lease) if lease.dialect() == dialect => {
            Link::fetch(&mut *open, lease.check_sql(), None).await.flatten()
        }
        other => {
            // Its connection may be broken; then the database rolls back by itself.
            let _ = open.rollback().await;
            return Err(
                other.map_or_else(|| unsupported(held.store(), OTHER_STORE), |_| elsewhere())
            );
        }
    };
    let refused = match checked {
        Ok(rows) if rows.locked > 0 => {
            return open.commit().await.map_err(|error| not_sent(dialect, COMMIT, error));
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    let _ = open.rollback().await;
    Err(explained(held, dialect, refused).await)
}

/// Why the check has not found the lock, or was `refused`, as the lock's own client sees it.
async fn explained(held: &Held, dialect: Dialect, refused: Option<sqlx::Error>) -> Error {
    let refused = match refused {
        // The database, which the lock's client would ask, too, does not answer.
        Some(error) if error.as_database_error().is_none() => return undone(dialect, error),
        refused => refused,
    };
    match (Clock::Boot.timeout(ASKED, held.renew()).await, refused) {
        (Some(Err(lost)), _) if !lost.is_unavailable() => lost,
        (_, Some(error)) if Refusal::of(dialect, &error) == Refusal::NoTable => elsewhere(),
        (_, Some(error)) => undone(dialect, error),
        (Some(Ok(())), None) => elsewhere(),
        (Some(Err(_)) | None, None) => unavailable(dialect.store(), COMMIT, Effect::None, UNKNOWN),
    }
}

/// The error of a transaction that was not committed.
fn undone(dialect: Dialect, error: sqlx::Error) -> Error {
    match not_sent(dialect, COMMIT, error) {
        Error::Unavailable { store, op, source, .. } => {
            unavailable(store, op, Effect::None, source)
        }
        error => error,
    }
}

fn elsewhere() -> Error {
    invalid("transaction", ELSEWHERE, ALLOWED)
}
