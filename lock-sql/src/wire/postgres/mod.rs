//! PostgreSQL.

mod fitness;
pub(crate) mod push_connection;

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::Attempt;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool,
    error::DatabaseError,
    postgres::{PgConnectOptions, PgSslMode},
    raw_sql,
};

use self::{
    fitness::{DIRECT, POOLED, STATE, State, is_fit},
    push_connection::Pushes,
};
use crate::{
    config::{Server, Tls},
    error,
    layout::{dialect::Dialect, row::Rows},
    wire::{
        connections::{Connections, Link},
        database::{Answer, Database},
        failure::Failure,
        limit::Limit,
        own_client::{self, Way},
        turns::{SEATS, Turn, Turns},
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
pub(crate) struct Postgres {
    turns: Turns,
    connections: Arc<Connections<PgConnection>>,
    pushes: Pushes,
}

impl Postgres {
    /// Sends nothing yet.
    pub(crate) fn new(server: &Server) -> Self {
        let options = options(server);
        Self::by(Arc::new(move || options.clone()))
    }

    /// Uses a pool's options. Sends nothing yet.
    pub(crate) fn of_pool(pool: &PgPool) -> Self {
        Self::by(own_client::way(pool, of_locks))
    }

    fn by(way: Way<PgConnection>) -> Self {
        let connections = Connections::new(way.clone(), SEATS);
        let pushes = Pushes { way, doubts: Arc::default(), task: Arc::default() };
        Self { turns: Turns::new(SEATS), connections, pushes }
    }
}

#[async_trait]
impl Database for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn turns(&self) -> &Turns {
        &self.turns
    }

    async fn execute(
        &self,
        script: &str,
        limit: &Limit,
        turn: Turn,
        caller: Option<&Attempt>,
    ) -> Answer {
        let answer = self.connections.run(script, limit, turn, caller).await;
        let doubtful = match &answer {
            Err(Failure::Lost(_)) => true,
            Err(Failure::Refused(why)) => error::is_read_only(Dialect::Postgres, why),
            _ => false,
        };
        if doubtful {
            self.pushes.doubts.broken.notify_one();
        }
        answer
    }

    fn refuse(&self) {
        self.turns.close();
        self.connections.refuse();
        if let Some(task) = self.pushes.task.get() {
            task.abort();
        }
    }

    async fn quit(&self) {
        self.connections.quit().await;
    }

    fn pushes(&self) -> Option<Pushes> {
        Some(self.pushes.clone())
    }

    fn check_pushes(&self) {
        self.pushes.doubts.silent.notify_one();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.refuse();
    }
}

impl Link for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn make(options: &PgConnectOptions) -> Result<Self, Failure> {
        let connect = async {
            let mut connection = PgConnection::connect_with(options).await?;
            let setup = AssertSqlSafe(format!("{SETUP}; {STATE}"));
            let answers = raw_sql(setup).fetch_all(&mut connection).await?;
            Ok((connection, State::read(answers.last())?))
        };
        let (connection, state) = connect.await.map_err(unconnected)?;
        is_fit(&state)?;
        Ok(connection)
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
    let mut options = options.application_name("distlock").options([DIRECT]);
    if let Some(user) = &server.user {
        options = options.username(user);
    }
    if let Some(password) = &server.password {
        options = options.password(password);
    }
    if let Some(database) = &server.database {
        options = options.database(database);
    }
    if let Some(ca) = &server.ca {
        options = options.ssl_root_cert(ca);
    }
    let options = options.ssl_mode(match server.tls {
        Tls::Off => PgSslMode::Disable,
        Tls::Prefer => PgSslMode::Prefer,
        Tls::Verify => PgSslMode::VerifyFull,
    });
    options.disable_statement_logging()
}
