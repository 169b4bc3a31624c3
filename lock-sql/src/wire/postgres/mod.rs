//! PostgreSQL.

pub(crate) mod doubts;
mod fitness;

use std::sync::{Arc, OnceLock};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool,
    error::DatabaseError,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgSslMode},
    raw_sql,
};
use uuid::Uuid;

use self::{
    doubts::Pushes,
    fitness::{DIRECT, POOLED, STATE, is_fit},
};
use crate::{
    config::{Server, Tls},
    error,
    layout::{dialect::Dialect, row::Rows},
    wire::{
        connections::Link,
        failure::Failure,
        own_client::{self, Way},
        remote::{Remote, set},
        script::OBSERVERS,
    },
};

/// A statement must see the data that is there when it runs, and must not wait for others for long.
/// It must be on the disk when it is answered: otherwise a crash of the server would roll tokens
/// back. It ends by itself when its client has given up. JIT is off: it takes longer to compile a
/// long list of names than to execute it.
const SETUP: &str = "SET default_transaction_isolation = 'read committed'; \
    SET lock_timeout = '2s'; SET statement_timeout = '3s'; SET jit = off; \
    SET bytea_output = 'hex'; SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// One client's connections to a server.
pub(crate) type Postgres = Remote<PgConnection>;

impl Postgres {
    /// Sends nothing yet.
    pub(crate) fn new(server: &Server) -> Self {
        let options = options(server);
        Self::with_pushes(Arc::new(move || options.clone()))
    }

    /// Uses a pool's options. Sends nothing yet.
    pub(crate) fn of_pool(pool: &PgPool) -> Self {
        Self::with_pushes(own_client::way(pool, of_locks))
    }

    fn with_pushes(way: Way<PgConnection>) -> Self {
        let mut remote = Self::by(None, way.clone());
        remote.pushes = Some(Pushes { way, doubts: Arc::default(), task: OnceLock::new() });
        remote
    }
}

impl Link for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn make(options: &PgConnectOptions) -> Result<Self, Failure> {
        let connect = async {
            let mut connection = PgConnection::connect_with(options).await?;
            let setup = AssertSqlSafe(format!("{SETUP}; {STATE}"));
            let answers = raw_sql(setup).fetch_all(&mut connection).await?;
            Ok((connection, is_fit(answers.last())?))
        };
        let (connection, fit) = connect.await.map_err(unconnected)?;
        fit.map(|()| connection)
    }

    async fn fetch(&mut self, script: String) -> sqlx::Result<sqlx::Result<Rows>> {
        raw_sql(AssertSqlSafe(script)).fetch_all(self).await.map(|rows| Rows::read(&rows))
    }
}

/// Old poolers refuse the start-up option that others only drop.
fn unconnected(why: sqlx::Error) -> Failure {
    let is_pooler =
        |said: &dyn DatabaseError| said.message().contains("unsupported startup parameter");
    match why.as_database_error().is_some_and(is_pooler) {
        true => Failure::Barred(error::unfit(Dialect::Postgres, POOLED)),
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

fn options(server: &Server) -> PgConnectOptions {
    let options = PgConnectOptions::new().host(&server.host).port(server.port);
    let options = options.application_name("distlock").options([DIRECT]);
    let options = set(options, server.user.as_deref(), PgConnectOptions::username);
    let options = set(options, server.password.as_deref(), PgConnectOptions::password);
    let options = set(options, server.database.as_deref(), PgConnectOptions::database);
    let options = set(options, server.ca.as_deref(), PgConnectOptions::ssl_root_cert);
    let options = options.ssl_mode(match server.tls {
        Tls::Off => PgSslMode::Disable,
        Tls::Prefer => PgSslMode::Prefer,
        Tls::Verify => PgSslMode::VerifyFull,
    });
    options.disable_statement_logging()
}

/// Makes the connection by which pushes come, one per client, and listens to them.
///
/// # Errors
///
/// If the connection fails, or the server takes no writes.
pub(crate) async fn listen(id: Uuid, options: PgConnectOptions) -> sqlx::Result<PgListener> {
    let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&one.connect_lazy_with(options)).await?;
    listener.eager_reconnect(false);
    // The server may be the former primary, which pushes nothing.
    let state = raw_sql(STATE).fetch_one(&mut listener).await?;
    if is_fit(Some(&state))?.is_err() {
        return Err(sqlx::Error::Io(std::io::Error::other("the server takes no writes")));
    }
    listener.listen(&format!("distlock_v1_{}", id.simple())).await?;
    listener.listen(OBSERVERS).await?;
    Ok(listener)
}
