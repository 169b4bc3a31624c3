//! SQLite: a file that the processes of one machine share.

mod clock;
mod file;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use lock_core::{Attempt, Effect, Error, Instant, Result, deadline::jitter, trace};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, SqliteConnection, raw_sql,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::time::sleep;

use crate::{
    connections::{Connections, Failure},
    dialect::Dialect,
    error::{self, is_passing},
    limit::Limit,
    place::Place,
    row::Row,
    schema,
    session::CLOCK,
};

/// How long SQLite itself waits for another process's transaction, shorter than any request may take.
const BUSY: Duration = Duration::from_millis(80);
/// How long opening insists.
const OPEN_LIMIT: Duration = Duration::from_secs(4);

/// Whose `data_version` it is: the numbers of two connections have nothing to do with each other.
const SETUP: &str = "CREATE TEMP TABLE connection AS SELECT abs(random() >> 1) AS id";

/// One client's way to a file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    place: Arc<Place>,
    connections: Arc<Connections<SqliteConnection>>,
    #[cfg(feature = "properties")]
    faults: crate::Faults,
}

impl Sqlite {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// As [`SqlLock::connect`](crate::SqlLock::connect).
    pub(crate) async fn open(path: Option<&Path>) -> Result<Self> {
        let own = path.is_none();
        let path = file::resolve(path)?;
        let place = Place::of(file::identity(&path)?);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(false)
            .busy_timeout(BUSY)
            .journal_mode(SqliteJournalMode::Wal)
            // A power cut may undo the last transactions, but the machine boots then: see `clock`.
            .synchronous(SqliteSynchronous::Normal)
            .disable_statement_logging();
        let deadline = CLOCK.now() + OPEN_LIMIT;
        let connection = loop {
            match prepare(&place, &options).await? {
                Ok(connection) => break connection,
                Err(why) if CLOCK.now() >= deadline => {
                    return Err(error::unavailable(Dialect::Sqlite, "connect", Effect::None, why));
                }
                Err(_) => sleep(jitter(BUSY)).await,
            }
        };
        let whom = if own { "this user's processes" } else { "all processes that open the file" };
        trace::opened("sqlite", &path.display(), whom);
        // SQLite lets one write at a time.
        let connections = Connections::new(options, SETUP, 1);
        connections.adopt(connection);
        Ok(Self {
            path,
            place,
            connections,
            #[cfg(feature = "properties")]
            faults: crate::Faults::default(),
        })
    }

    pub(crate) async fn run(
        &self,
        script: &str,
        limit: &Limit,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Vec<Row>), Failure> {
        #[cfg(feature = "properties")]
        self.faults.request(limit).await?;
        let answer = {
            // Within a process in order, which is quicker than SQLite's trying again.
            let _turn = limit.keep(self.place.turn.lock()).await.map_err(Failure::Down)?;
            self.connections.run(script, limit, attempt).await
        };
        #[cfg(feature = "properties")]
        self.faults.reply(limit).await?;
        answer
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    #[cfg(feature = "properties")]
    pub(crate) fn faults(&self) -> crate::Faults {
        self.faults.clone()
    }

    /// The file stays open until this is dropped: who closes it last copies SQLite's log into it and
    /// waits for the disk, which a process that ends need not do.
    pub(crate) fn close(&self) {
        self.connections.refuse();
    }
}

/// Makes sure that the tables are there and belong to this boot of the machine. The inner error is one
/// that passes.
async fn prepare(
    place: &Place,
    options: &SqliteConnectOptions,
) -> Result<Result<SqliteConnection, sqlx::Error>> {
    let _turn = place.turn.lock().await;
    let (settled, settle) = (clock::settled()?, clock::settle()?);
    let prepared = async {
        let mut connection = SqliteConnection::connect_with(options).await?;
        let settled = sqlx::query_scalar(AssertSqlSafe(settled));
        // Mostly it was done before, and there is nothing to write.
        let clock: String = match settled.fetch_optional(&mut connection).await {
            Ok(Some(clock)) => clock,
            _ => {
                set_up(&mut connection, settle).await?;
                let clock = sqlx::query_scalar("SELECT clock FROM distlock_v1_meta");
                clock.fetch_one(&mut connection).await?
            }
        };
        raw_sql(SETUP).execute(&mut connection).await?;
        Ok((connection, clock))
    };
    match prepared.await {
        Ok((connection, clock)) => clock::check(&clock).map(|()| Ok(connection)),
        Err(why) if is_passing(Dialect::Sqlite, &why) => Ok(Err(why)),
        Err(why) => Err(refused(options.get_filename(), why)),
    }
}

async fn set_up(connection: &mut SqliteConnection, settle: String) -> Result<(), sqlx::Error> {
    // The jump of the tokens at a boot must outlive the next power cut.
    raw_sql("PRAGMA synchronous = FULL").execute(&mut *connection).await?;
    let schema = schema::schema(Dialect::Sqlite);
    let setup = format!("BEGIN IMMEDIATE; {schema} {settle} COMMIT;");
    if let Err(why) = raw_sql(AssertSqlSafe(setup)).execute(&mut *connection).await {
        raw_sql("ROLLBACK").execute(&mut *connection).await.ok();
        return Err(why);
    }
    raw_sql("PRAGMA synchronous = NORMAL").execute(connection).await?;
    Ok(())
}

fn refused(path: &Path, why: sqlx::Error) -> Error {
    let shown = format!("{}: {why}", path.display());
    match error::convert(Dialect::Sqlite, "connect", why) {
        Error::Denied { store, op, .. } => Error::Denied { store, op, source: shown.into() },
        Error::Rejected { store, op, .. } => {
            Error::Rejected { store, op, effect: Effect::None, source: shown.into() }
        }
        error => error,
    }
}
