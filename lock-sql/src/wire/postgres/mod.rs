//! PostgreSQL.

mod prepared;
pub(crate) mod pushes;

use std::{
    env,
    sync::{Arc, OnceLock},
    time::Duration,
};

use lock_core::{Encryption, Error, Secret, Tls, User, keep::errors};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool, Row as _,
    error::DatabaseError,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgRow, PgSslMode},
    raw_sql,
};
use tokio::time::timeout;
use uuid::Uuid;

use self::pushes::Pushes;
use crate::{
    config::server::{Pooler, Server},
    error,
    layout::{dialect::Dialect, row::Rows},
    wire::{
        failure::Failure,
        given_client,
        hosts::{Fetched, Hosts, Link, Plans},
        remote::{Remote, address, hosts, set, texts},
        script::OBSERVERS,
        turns::{GOODBYE, Limit},
        verdict::Origin,
    },
};

/// A statement must see the data that is there when it runs, and must not wait for others for long.
/// It must be on the disk when it is answered: otherwise a crash of the server would roll tokens
/// back. It ends by itself when its client has given up. JIT is off: it takes longer to compile a
/// long list of names than to execute it. A plan is made once, mostly while the tables are almost
/// empty, and must be good for thousands of entries, too: it goes by the indexes.
const SETUP: &str = "SET default_transaction_isolation = 'read committed'; \
    SET lock_timeout = '2s'; SET statement_timeout = '3s'; SET jit = off; \
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; \
    SET bytea_output = 'hex'; SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// Asks for the state that shows whether a server can keep locks.
const STATE: &str = "SELECT pg_is_in_recovery()::text, current_setting('transaction_read_only'), \
    current_setting('distlock.direct', true)";

/// Asks where the data of a primary comes from. The first digits of the name of a file of its log
/// are its timeline.
const ORIGIN: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()), \
    left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/// What goes before and after each script behind a pooler.
///
/// The settings are those of [`SETUP`], for the message's own transaction: the next message may meet
/// another session, and a `SET` of another program may have stayed in this one. With its
/// `search_path`, or with its role where the path names `$user`, one of two clients would find
/// other tables, so both would have the same lock.
///
/// The end asks the same as [`ORIGIN`], and for the database and the table, too: a pooler may be
/// led to another database of the server. It fails on a standby, whose data may be old.
const POOLED: [&str; 2] = [
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL role TO DEFAULT; \
     SET LOCAL search_path TO DEFAULT; \
     SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '3s'; SET LOCAL jit = off; \
     SET LOCAL bytea_output = 'hex'; SET LOCAL client_min_messages = 'warning'; \
     SELECT set_config('synchronous_commit', 'on', true) \
     WHERE current_setting('synchronous_commit') = 'off'; ",
    "; SELECT (SELECT system_identifier FROM pg_control_system()), \
     ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint, \
     (SELECT oid::bigint FROM pg_database WHERE datname = current_database()), \
     COALESCE(to_regclass('distlock_v1_entries')::oid::bigint, 0)",
];

/// A setting in the start-up of a connection. A pooler does not pass it on.
const DIRECT: (&str, &str) = ("distlock.direct", "yes");

/// Why a pooler is refused unless it is named, and what to do.
const UNNAMED: &str = "a pooler of connections is between, such as PgBouncer: it hands the statements of \
    one session to several, so that pushes and settings get lost; name the server itself \
    (a client has few connections, and shares them among all its locks), or say how it pools: \
    pooler=session or pooler=transaction";

/// The port that is named by default.
const PORT: u16 = 5432;

/// One client's connections to a server.
pub(crate) type Postgres = Remote<PgConnection>;

impl Postgres {
    /// Sends nothing yet.
    pub(crate) fn new(server: &Server) -> Result<Self, Error> {
        let hosts = hosts(server, PORT, options)?;
        Ok(match server.pooler {
            Some(Pooler::Transaction) => Self::by(Some(address(server)), hosts),
            Some(Pooler::Session) | None => Self::with_pushes(hosts),
        })
    }

    /// Uses a pool's options. Sends nothing yet.
    pub(crate) fn of_pool(pool: &PgPool) -> Self {
        Self::with_pushes(Arc::new(Hosts::one(given_client::way(pool, of_locks))))
    }

    fn with_pushes(hosts: Arc<Hosts<PgConnection>>) -> Self {
        let mut remote = Self::by(None, hosts.clone());
        let broken = remote.connections.broken.clone();
        remote.pushes = Some(Pushes { hosts, broken, task: OnceLock::new() });
        remote
    }
}

impl Link for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;

    const HUNG_COMMITS: Option<&str> = Some(
        "SELECT ''::bytea AS attempt, count(*) AS number FROM pg_stat_activity \
         WHERE usename = current_user AND wait_event = 'SyncRep'",
    );

    const POOLED: [&str; 2] = POOLED;

    async fn make(options: &PgConnectOptions) -> Result<(Self, Option<Origin>), Failure> {
        let is_direct = is_direct(options);
        let connect = async {
            let mut connection = Box::pin(PgConnection::connect_with(options)).await?;
            // Behind a pooler, a setting would stay in a session that other programs use, too.
            let setup = if is_direct { SETUP } else { "" };
            let setup = AssertSqlSafe(format!("{setup}; {STATE}"));
            let answers = raw_sql(setup).fetch_all(&mut connection).await?;
            Ok((connection, is_fit(answers.last(), is_direct)?))
        };
        let (mut connection, fit) = connect.await.map_err(|why| unconnected(why, is_direct))?;
        fit?;
        if !is_direct {
            // Each message tells it.
            return Ok((connection, None));
        }
        // A user may not be allowed to ask.
        let told = raw_sql(ORIGIN).fetch_one(&mut connection).await;
        Ok((connection, told.and_then(|row| origin(&row)).ok()))
    }

    /// A message without `BEGIN` is one transaction, and no script of PostgreSQL has one. So one that
    /// is refused has had no effect, and is sent again as a whole if the session has forgotten a
    /// statement (26000: `DISCARD ALL`), or a column has another type by now (0A000). Validity counts
    /// from the first sending.
    async fn fetch(&mut self, script: String, plans: Option<&mut Plans>) -> Fetched {
        let Some(plans) = plans else { return send(self, script).await };
        loop {
            let is_complete = plans.is_empty();
            let answer = send(self, prepared::message(&script, plans)).await;
            let Err(why) = &answer else { return answer };
            plans.clear();
            if is_complete || !is_stale(why) {
                return answer;
            }
        }
    }
}

fn is_stale(why: &sqlx::Error) -> bool {
    let code = why.as_database_error().and_then(|refused| refused.code());
    matches!(code.as_deref(), Some("26000" | "42P05" | "0A000"))
}

async fn send(connection: &mut PgConnection, message: String) -> Fetched {
    raw_sql(AssertSqlSafe(message)).fetch_all(connection).await.map(|rows| Rows::read(&rows))
}

/// Whether the options lead to a server itself: they name no pooler.
fn is_direct(options: &PgConnectOptions) -> bool {
    options.get_options().is_some_and(|options| options.contains(DIRECT.0))
}

/// Checks by the answer to [`STATE`] that a server can keep locks, and that no pooler is between if
/// none is named. The outer error is about an answer that makes no sense.
fn is_fit(row: Option<&PgRow>, is_direct: bool) -> sqlx::Result<Result<(), Failure>> {
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    let (recovery, read_only): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let direct: Option<String> = row.try_get(2)?;
    if is_direct && direct.as_deref() != Some(DIRECT.1) {
        return Ok(Err(Failure::Barred(error::unfit(Dialect::Postgres, UNNAMED))));
    }
    let why = match (recovery.as_str(), read_only.as_str()) {
        ("false", "off") => return Ok(Ok(())),
        ("false", _) => "the server is read-only (default_transaction_read_only)",
        _ => "the server is a standby, which takes no writes",
    };
    Ok(Err(Failure::down(why)))
}

/// Reads the answer to [`ORIGIN`].
fn origin(row: &PgRow) -> sqlx::Result<Origin> {
    let (system, timeline): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let decode = |why: std::num::ParseIntError| sqlx::Error::Decode(why.into());
    Ok(Origin {
        system: system.parse().map_err(decode)?,
        timeline: u32::from_str_radix(&timeline, 16).map_err(decode)?,
        tables: [0; 2],
    })
}

/// Old poolers refuse the start-up option that others only drop.
fn unconnected(why: sqlx::Error, is_direct: bool) -> Failure {
    let is_pooler =
        |error: &dyn DatabaseError| error.message().contains("unsupported startup parameter");
    match is_direct && why.as_database_error().is_some_and(is_pooler) {
        true => Failure::Barred(error::unfit(Dialect::Postgres, UNNAMED)),
        false => Failure::unconnected(Dialect::Postgres, why),
    }
}

/// Keeps the name of the caller's program, which says more than `distlock`.
fn of_locks(options: PgConnectOptions) -> PgConnectOptions {
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("distlock"),
    };
    options.options([DIRECT]).disable_statement_logging()
}

fn options(server: &Server, host: &str, port: u16) -> Result<PgConnectOptions, Error> {
    // No password of `~/.pgpass` and `PGPASSWORD`: options of distlock alone say where it is.
    let options = PgConnectOptions::new_without_pgpass().host(host).port(port);
    check_environment(&options, &server.tls)?;
    let options = options.application_name("distlock");
    let options = match server.pooler {
        None => options.options([DIRECT]),
        // Poolers refuse start-up parameters that they do not know.
        Some(_) => options.extra_float_digits(None::<i8>),
    };
    let user = server.user.as_ref().map(User::read).transpose()?;
    let options = set(options, user.as_deref(), PgConnectOptions::username);
    let options = set(options, server.database.as_deref(), PgConnectOptions::database);
    let tls = &server.tls;
    let password = server.password.as_ref().map(Secret::read).transpose()?;
    let [ca, cert, key] = texts(tls)?;
    let options = options.password(password.as_deref().unwrap_or_default());
    // Also an empty text: otherwise `PGSSLROOTCERT` would add authorities.
    let options = options.ssl_root_cert_from_pem(ca.unwrap_or_default().into_bytes());
    let options = set(options, cert, PgConnectOptions::ssl_client_cert_from_pem);
    let options = set(options, key, PgConnectOptions::ssl_client_key_from_pem);
    let options = options.ssl_mode(match tls.mode {
        Encryption::Off => PgSslMode::Disable,
        Encryption::Prefer => PgSslMode::Prefer,
        _ => PgSslMode::VerifyFull,
    });
    Ok(options.disable_statement_logging())
}

/// Checks the variables that the options do not replace. Refuses `PGOPTIONS`: with its
/// `search_path`, one of two processes would find other tables, so both would have the same lock.
/// The library can only add to it. The value is not shown. Refuses one of `PGSSLCERT` and
/// `PGSSLKEY` without the other, too.
fn check_environment(options: &PgConnectOptions, tls: &Tls) -> Result<(), Error> {
    if options.get_options().is_some_and(|options| !options.trim().is_empty()) {
        return Err(invalid("PGOPTIONS", "unset: a search_path in it would lead to other locks"));
    }
    let is_used = tls.mode != Encryption::Off && tls.cert.is_none();
    match (is_used, env::var("PGSSLCERT"), env::var("PGSSLKEY")) {
        (true, Ok(_), Err(_)) => Err(invalid("PGSSLCERT", "unset, or beside PGSSLKEY")),
        (true, Err(_), Ok(_)) => Err(invalid("PGSSLKEY", "unset, or beside PGSSLCERT")),
        _ => Ok(()),
    }
}

fn invalid(variable: &str, allowed: &str) -> Error {
    errors::invalid(&format!("environment variable {variable}"), "(set)", allowed)
}

/// Makes the connection by which pushes come, one per client, and listens to them. `limit` counts
/// where the configuration names no `connect_timeout`. After a failure, the next call asks all
/// hosts. Unless this is the `first` call, a login shows that the host still lets this client in:
/// the library repeats one that fails.
pub(crate) async fn listen(
    id: Uuid,
    hosts: &Hosts<PgConnection>,
    limit: Duration,
    first: bool,
) -> Result<PgListener, Failure> {
    if !first {
        let (connected, _) = Box::pin(hosts.make(limit)).await?;
        let _ = timeout(GOODBYE, connected.connection.close()).await;
    }
    let accepted = hosts.primary().and_then(|(host, at)| Some((host.logins.last_accepted()?, at)));
    let (options, moved) = accepted.ok_or_else(|| Failure::down("no host takes writes"))?;
    let limit = Limit::new(hosts.timeouts.connect.unwrap_or(limit));
    let listener = limit.within(listen_with(id, options)).await;
    listener.flatten().inspect_err(|_| hosts.doubt(moved)).map_err(Failure::Down)
}

async fn listen_with(id: Uuid, options: PgConnectOptions) -> sqlx::Result<PgListener> {
    let is_direct = is_direct(&options);
    let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = Box::pin(PgListener::connect_with(&one.connect_lazy_with(options))).await?;
    listener.eager_reconnect(false);
    // The server may be the former primary, which pushes nothing.
    let state = raw_sql(STATE).fetch_one(&mut listener).await?;
    if is_fit(Some(&state), is_direct)?.is_err() {
        return Err(sqlx::Error::Io(std::io::Error::other("the server takes no writes")));
    }
    Box::pin(listener.listen(&format!("distlock_v1_{}", id.simple()))).await?;
    Box::pin(listener.listen(OBSERVERS)).await?;
    Ok(listener)
}
