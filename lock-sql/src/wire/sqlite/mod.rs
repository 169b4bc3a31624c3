//! SQLite: a file that the processes of one machine share.

mod clock;
mod file;
mod shared;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, Result,
    deadline::jitter,
    keep::{
        poison::lock,
        share::{Shared, share},
    },
    trace,
};
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Connection, SqliteConnection, SqlitePool, raw_sql,
    sqlite::{
        SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode,
        SqliteSynchronous,
    },
};
use tokio::time::sleep;

pub(crate) use self::shared::caution;
use crate::{
    error::{about, is_final, not_sent},
    layout::{dialect::Dialect, row::Rows, schema::schema},
    wire::{
        connections::Connections,
        database::{Answer, Database},
        failure::Failure,
        given_client::{self, Way},
        hosts::{Fetched, Hosts, Link, Plans},
        sqlite::{clock::Here, file::Location},
        turns::{Limit, Rank, Turn, Turns},
        values::{MOST, split},
        verdict::Origin,
    },
};

/// How long SQLite itself waits for another process's transaction, shorter than any request may
/// take.
const BUSY: Duration = Duration::from_millis(80);
/// How long opening is retried.
const OPEN_LIMIT: Duration = Duration::from_secs(4);

/// SQLite lets one write at a time. Within a process writes go in order, which is quicker than
/// SQLite's retries.
const SEATS: [usize; 3] = [1, 1, 1];

/// One line per file, in which all clients of this process take turns.
static TURNS: LazyLock<Shared<String, Turns>> = LazyLock::new(Mutex::default);

/// Identifies the connection of a `data_version`: the numbers of two connections are unrelated.
const SETUP: &str = "CREATE TEMP TABLE connection AS SELECT abs(random() >> 1) AS id";

/// Asks for the time namespace of a file.
const CLOCK: &str = "SELECT clock FROM distlock_v1_meta LIMIT 1";

/// Why there is no connection to a file whose log was deleted, until all connections to it are
/// closed.
const FORMER_LOG: &str = "its log (-wal and -shm) was deleted while it was in use, and this process still \
    has it open: the other clients in this process leave it with their next request, and a pool of the \
    program's own leaves it when it is closed";

/// A script that only needs a connection.
const PROBE: &str = "SELECT 1";

/// One client's way to a file.
pub(crate) struct Sqlite {
    location: Location,
    /// The same for each symbolic link to the file.
    real: String,
    turns: Arc<Turns>,
    way: Way<SqliteConnection>,
    file: Mutex<File>,
    #[cfg(feature = "properties")]
    faults: crate::wire::faults::Faults,
}

/// The file that was found at the path. Later another file may be there, or another log.
struct File {
    identity: String,
    /// Its path, which SQLite's log has, too.
    real: String,
    /// The log that its connections use, once there are some.
    log: Option<[u64; 2]>,
    /// Whether it is known that this process does not have it open with another log.
    checked: bool,
    connections: Arc<Connections<SqliteConnection>>,
}

impl File {
    /// Finds the file that is there now, or makes one. Does not connect yet: each connection finds
    /// the tables or makes them. If another file has taken its place by then, the next script sees
    /// that.
    fn at(location: &Location, way: &Way<SqliteConnection>) -> Result<Self> {
        let identity = location.make()?;
        let (path, way) = (location.path.clone(), way.clone());
        let way = Arc::new(move || Ok(way()?.filename(&path)));
        let connections = Connections::new(Arc::new(Hosts::one(way)), SEATS[0]);
        Ok(Self { identity, real: location.real()?, log: None, checked: false, connections })
    }

    /// Whether it is at the path, with the log that its connections use.
    fn is_there(&self, location: &Location) -> bool {
        location.identity().is_ok_and(|there| there == self.identity)
            && self.log.is_none_or(|log| file::log(&self.real) == Some(log))
    }
}

/// The absolute path of a file; of the default file for `None`.
pub(crate) fn path(path: Option<&Path>) -> Result<PathBuf> {
    Location::of(path).map(|location| location.path)
}

/// Overrides the settings of a pool that would let two of its connections see different locks.
fn of_locks(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .in_memory(false)
        .shared_cache(false)
        .read_only(false)
        .immutable(false)
        .create_if_missing(false)
        .locking_mode(SqliteLockingMode::Normal)
        .busy_timeout(BUSY)
        .journal_mode(SqliteJournalMode::Wal)
        // A power cut may undo the last transactions, but the machine boots then: see `clock`.
        .synchronous(SqliteSynchronous::Normal)
        .optimize_on_close(false, None)
        .disable_statement_logging()
}

impl Sqlite {
    /// Opens the file, or creates it.
    pub(crate) async fn open(path: Option<&Path>) -> Result<Self> {
        let way = Arc::new(|| Ok(of_locks(SqliteConnectOptions::new())));
        Self::at(Location::of(path)?, way).await
    }

    /// Opens the file of a pool.
    pub(crate) async fn of_pool(pool: &SqlitePool) -> Result<Self> {
        let location = Location::of(Some(pool.connect_options().get_filename()))?;
        location.check_is_there()?;
        Self::at(location, given_client::way(pool, of_locks)).await
    }

    async fn at(location: Location, way: Way<SqliteConnection>) -> Result<Self> {
        let file = File::at(&location, &way)?;
        let real = location.real()?;
        let turns = share(&TURNS, real.clone(), || Turns::new(SEATS));
        let sqlite = Self {
            turns,
            real,
            location,
            file: Mutex::new(file),
            way,
            #[cfg(feature = "properties")]
            faults: crate::wire::faults::Faults::default(),
        };
        let deadline = Clock::Boot.now() + OPEN_LIMIT;
        while let Err(failure) = sqlite.probe().await {
            match failure {
                Failure::Down(_) if Clock::Boot.now() < deadline => sleep(jitter(BUSY)).await,
                failure => return Err(failure.unsent(Dialect::Sqlite, "connect")),
            }
        }
        let whom = match sqlite.location.is_default {
            true => "this user's processes",
            false => "all processes that open the file",
        };
        trace::opened("sqlite", &sqlite.location.path.display(), whom);
        Ok(sqlite)
    }

    async fn probe(&self) -> Result<(), Failure> {
        let turn = self.turns.take(Rank::Ask, OPEN_LIMIT).await?;
        self.execute(PROBE, &Limit::new(OPEN_LIMIT), turn).await.map(drop)
    }

    /// Returns the connections to the file that is there now. A file that was deleted or replaced
    /// is left with all its connections, and so is one whose log was deleted, as when a copy was
    /// restored in its place: only its own clients would see it for ever. The locks in it are lost,
    /// and their holders find that out at their next renewal.
    fn connections(&self) -> Result<Arc<Connections<SqliteConnection>>, Failure> {
        let mut file = lock(&self.file);
        // A closed client follows no new file.
        if !file.is_there(&self.location) && !file.connections.is_refusing() {
            *file = File::at(&self.location, &self.way).map_err(Failure::Barred)?;
        }
        if !file.checked && file::has_former_log(&file.real) {
            return Err(Failure::down(FORMER_LOG));
        }
        file.checked = true;
        Ok(file.connections.clone())
    }

    /// Notes which log these connections use.
    fn note_log(&self, connections: &Arc<Connections<SqliteConnection>>) {
        let mut file = lock(&self.file);
        if file.log.is_none() && Arc::ptr_eq(&file.connections, connections) {
            // No file has the number 0: a log that was deleted at once is noticed, too.
            file.log = Some(file::log(&file.real).unwrap_or_default());
        }
    }
}

#[async_trait]
impl Database for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn turns(&self) -> &Turns {
        &self.turns
    }

    async fn execute(&self, script: &str, limit: &Limit, turn: Turn) -> Answer {
        #[cfg(feature = "properties")]
        let turn = match self.faults.delays_requests() {
            false => turn,
            // Others do not wait for a disk that hangs for this client only.
            true => {
                let rank = turn.rank;
                drop(turn);
                self.faults.request(limit).await?;
                self.turns.take(rank, limit.whole).await?
            }
        };
        let connections = self.connections()?;
        let answer = connections.run(script, limit, turn).await;
        if answer.is_ok() {
            self.note_log(&connections);
        }
        #[cfg(feature = "properties")]
        self.faults.reply(limit).await?;
        answer
    }

    // Without `quit`, the file stays open until the last handle is dropped: the last close copies
    // SQLite's log into it and waits for the disk, which a process that ends need not do.
    fn refuse(&self) {
        lock(&self.file).connections.refuse();
    }

    fn known_as(&self) -> Option<&str> {
        Some(&self.real)
    }

    #[cfg(feature = "properties")]
    fn faults(&self) -> crate::wire::faults::Faults {
        self.faults.clone()
    }
}

impl Link for SqliteConnection {
    const DIALECT: Dialect = Dialect::Sqlite;

    /// Also makes sure that the tables are there, and that their clock is this process's.
    async fn make(options: &SqliteConnectOptions) -> Result<(Self, Option<Origin>), Failure> {
        let here = Here::now().map_err(Failure::Barred)?;
        let connect = async {
            let mut connection = SqliteConnection::connect_with(options).await?;
            let settled = sqlx::query_scalar(AssertSqlSafe(here.settled()));
            // Mostly it was done before, and there is nothing to write.
            let clock: String = match settled.fetch_optional(&mut connection).await {
                Ok(Some(clock)) => clock,
                _ => set_up(&mut connection, &here).await?,
            };
            raw_sql(SETUP).execute(&mut connection).await?;
            Ok((connection, clock))
        };
        match connect.await {
            Ok((connection, clock)) if here.has(&clock) => Ok((connection, None)),
            Ok((_, clock)) => Err(Failure::Barred(here.other(&clock))),
            Err(why) if is_final(Dialect::Sqlite, &why) => {
                let why = not_sent(Dialect::Sqlite, "connect", why);
                Err(Failure::Barred(about(options.get_filename().display(), why)))
            }
            Err(why) => Err(Failure::Down(why)),
        }
    }

    async fn fetch(&mut self, script: String, plans: Option<&mut Plans>) -> Fetched {
        let rows = match plans.and_then(|_| bound(&script)) {
            // The library keeps what it has prepared, by the text.
            Some((text, values)) => {
                let query = sqlx::query_with::<sqlx::Sqlite, _>(AssertSqlSafe(text), values);
                query.fetch_all(self).await
            }
            None => raw_sql(AssertSqlSafe(script)).fetch_all(self).await,
        };
        rows.map(|rows| Rows::read(&rows))
    }
}

/// A script with parameters in place of its values. Returns `None` if it is better prepared each
/// time: a `PRAGMA` may take effect when it is prepared.
fn bound(script: &str) -> Option<(String, SqliteArguments)> {
    let (parts, rest) = split(script);
    if parts.len() > MOST || script.starts_with("PRAGMA") {
        return None;
    }
    let (mut text, mut values) = (String::with_capacity(script.len()), SqliteArguments::default());
    for (before, value) in parts {
        text.extend([before, "?"]);
        let added = match value.strip_prefix("x'") {
            Some(hex) => Arguments::add(&mut values, bytes(hex)),
            None => Arguments::add(&mut values, value.parse::<i64>().ok()?),
        };
        added.ok()?;
    }
    text.push_str(rest);
    Some((text, values))
}

/// The bytes that pairs of digits stand for, up to the end of these.
fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2).map_while(|pair| std::str::from_utf8(pair).ok());
    pairs.map_while(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

/// Makes the tables, and settles them in this boot. Returns the time namespace of the file. If it
/// fails, the connection must end: its transaction may be open.
async fn set_up(connection: &mut SqliteConnection, here: &Here) -> sqlx::Result<String> {
    // The jump of the tokens at a boot must outlive the next power cut.
    let make = format!("PRAGMA synchronous = FULL; BEGIN IMMEDIATE; {}", schema(Dialect::Sqlite));
    raw_sql(AssertSqlSafe(make)).execute(&mut *connection).await?;
    let theirs: Option<String> = sqlx::query_scalar(CLOCK).fetch_optional(&mut *connection).await?;
    // By another clock, no entry can be judged.
    let settle = match &theirs {
        Some(theirs) if !here.has(theirs) => String::new(),
        _ => here.settle(),
    };
    let finish = format!("{settle} COMMIT; PRAGMA synchronous = NORMAL;");
    raw_sql(AssertSqlSafe(finish)).execute(&mut *connection).await?;
    sqlx::query_scalar(CLOCK).fetch_one(connection).await
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn scripts_that_differ_in_their_values_are_prepared_once() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let mut plans = Some(Plans::new());
        for number in [3_u64, 4] {
            let script = format!(
                "BEGIN; SELECT x'' AS attempt, {number} AS number; \
                 SELECT x'{:032x}' AS attempt, -{number} + 9 AS number; COMMIT;",
                7
            );
            let rows = connection.fetch(script, plans.as_mut()).await.unwrap().unwrap();
            assert_eq!(rows.numbers, [(Uuid::nil(), number), (Uuid::from_u128(7), 9 - number)]);
            assert_eq!(connection.cached_statements_size(), 1);
        }
    }

    #[test]
    fn a_pragma_is_prepared_each_time() {
        assert!(bound("SELECT 1;").is_some());
        assert!(bound("PRAGMA synchronous = FULL; SELECT 1;").is_none());
    }
}
