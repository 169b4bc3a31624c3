//! MySQL and MariaDB.

use std::sync::Arc;

use lock_core::{Attempt, Instant};
use sqlx::{
    ConnectOptions, Connection, MySqlConnection,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    raw_sql,
};

use crate::{
    config::{Server, Tls},
    connections::{Connections, Failure},
    dialect::Dialect,
    limit::Limit,
    place::Place,
    row::Row,
    server::PLACES,
    turns::{Turn, Turns},
};

/// A statement is to see what is there when it runs, and is not to wait for others for long.
const SETUP: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
                     SET SESSION innodb_lock_wait_timeout = 2, SESSION autocommit = 1";

/// One client's connections to a server.
#[derive(Debug)]
pub(crate) struct MySql {
    place: Arc<Place>,
    turns: Turns,
    connections: Arc<Connections<MySqlConnection>>,
}

impl MySql {
    /// Nothing is sent yet.
    pub(crate) fn new(server: &Server) -> Self {
        let Server { host, port, database, .. } = server;
        let database = database.as_deref().unwrap_or_default();
        Self {
            place: Place::of(format!("{host}:{port}/{database}")),
            turns: Turns::new(PLACES),
            connections: Connections::new(options(server), PLACES),
        }
    }

    /// Whoever else of this process uses the database: those who name the server as this one does.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) async fn run(
        &self,
        script: &str,
        limit: &Limit,
        turn: Turn,
        attempt: Option<&Attempt>,
    ) -> Result<(Instant, Vec<Row>), Failure> {
        self.connections.run(script, limit, turn, attempt).await
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) fn refuse(&self) {
        self.turns.close();
        self.connections.refuse();
    }

    pub(crate) async fn quit(&self) {
        self.connections.quit().await;
    }
}

/// Makes a connection that knows how it is to work.
///
/// # Errors
///
/// [`Failure::Barred`] and [`Failure::Down`].
pub(crate) async fn connect(options: &MySqlConnectOptions) -> Result<MySqlConnection, Failure> {
    let connect = async {
        let mut connection = MySqlConnection::connect_with(options).await?;
        raw_sql(SETUP).execute(&mut connection).await?;
        Ok(connection)
    };
    connect.await.map_err(|why| Failure::unconnected(Dialect::MySql, why))
}

fn options(server: &Server) -> MySqlConnectOptions {
    let mut options = MySqlConnectOptions::new().host(&server.host).port(server.port);
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
        options = options.ssl_ca(ca);
    }
    let options = options.ssl_mode(match server.tls {
        Tls::Off => MySqlSslMode::Disabled,
        Tls::Prefer => MySqlSslMode::Preferred,
        Tls::Verify => MySqlSslMode::VerifyIdentity,
    });
    options.disable_statement_logging()
}
