//! PostgreSQL.

mod listen;

use std::sync::{Arc, OnceLock};

use lock_core::{Attempt, Instant};
use sqlx::{
    ConnectOptions, Connection, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
    raw_sql,
};
use tokio::task::AbortHandle;

use crate::{
    config::{Server, Tls},
    connections::{Connections, Failure},
    dialect::Dialect,
    limit::Limit,
    row::Row,
    server::PLACES,
    session::Session,
    turns::{Turn, Turns},
};

/// A statement is to see what is there when it runs, is not to wait for others for long, and is to be on
/// the disk when it is answered: else a crash of the server would take tokens back.
const SETUP: &str = "SET default_transaction_isolation = 'read committed'; \
    SET lock_timeout = '2s'; SET bytea_output = 'hex'; SET client_min_messages = 'warning'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// One client's connections to a server.
pub(crate) struct Postgres {
    options: PgConnectOptions,
    turns: Turns,
    connections: Arc<Connections<PgConnection>>,
    listening: OnceLock<AbortHandle>,
    doubts: Arc<listen::Doubts>,
}

/// The library's options show the password.
impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl Postgres {
    /// Nothing is sent yet.
    pub(crate) fn new(server: &Server) -> Self {
        let options = options(server);
        let connections = Connections::new(options.clone(), PLACES);
        Self {
            options,
            turns: Turns::new(PLACES),
            connections,
            listening: OnceLock::new(),
            doubts: Arc::default(),
        }
    }

    pub(crate) async fn run(
        &self,
        script: &str,
        limit: &Limit,
        turn: Turn,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Vec<Row>), Failure> {
        let answer = self.connections.run(script, limit, turn, attempt).await;
        if matches!(answer, Err(Failure::Lost(_))) {
            self.doubts.broken.notify_one();
        }
        answer
    }

    /// Listens to pushes for a session until it ends.
    pub(crate) fn listen(&self, session: &Arc<Session>) {
        let listen = listen::run(session, self.options.clone(), self.doubts.clone());
        // Called once.
        let _ = self.listening.set(tokio::spawn(listen).abort_handle());
    }

    /// Asks whether pushes still come.
    pub(crate) fn check(&self) {
        self.doubts.silent.notify_one();
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) fn refuse(&self) {
        self.turns.close();
        self.connections.refuse();
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
    }

    pub(crate) async fn quit(&self) {
        self.connections.quit().await;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// Makes a connection that knows how it is to work.
///
/// # Errors
///
/// [`Failure::Barred`] and [`Failure::Down`].
pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Failure> {
    let connect = async {
        let mut connection = PgConnection::connect_with(options).await?;
        raw_sql(SETUP).execute(&mut connection).await?;
        Ok(connection)
    };
    connect.await.map_err(|why| Failure::unconnected(Dialect::Postgres, why))
}

fn options(server: &Server) -> PgConnectOptions {
    let options = PgConnectOptions::new().host(&server.host).port(server.port);
    let mut options = options.application_name("distlock");
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
