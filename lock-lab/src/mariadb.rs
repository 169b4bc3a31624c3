//! A private MariaDB.

mod options;
mod status;

use std::ops::Deref;

use self::options::MariaDbOptions;
use crate::{Builder, LabError, Server, builder::Kind, tls::Tls};

/// A private MariaDB, without a binary log.
///
/// [`Server::url`] names the user `lab`, a password made for this server, and the database `lab`.
/// The user may do everything in that database, make other users and give them rights there, and
/// see all connections. In all else it is an ordinary user. By default a commit survives a kill -9
/// of the server, but not a crash of the machine.
#[derive(Debug)]
pub struct MariaDb {
    server: Server,
    options: MariaDbOptions,
}

impl MariaDb {
    /// Starts a MariaDB with default options and waits until it answers.
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
    }

    /// Checks that this machine has all that it needs with default options, without starting it.
    pub fn installed() -> Result<(), LabError> {
        Self::builder().installed()
    }

    /// Returns the options to choose from.
    pub fn builder() -> Builder<Self> {
        Builder::default()
    }

    /// Runs statements as the user `lab` on a connection of its own, until one fails, and returns
    /// the rows as text: one line each, tabs between the fields, `NULL` for null.
    ///
    /// They show up in [`Server::counters`] like those of any other client.
    pub async fn sql(&self, statements: &str) -> Result<String, LabError> {
        let (client, statements) =
            (self.options.client(self.addr(), &["lab"])?, statements.to_owned());
        self.ask(async move { client.run(&statements).await }).await
    }

    /// Same as [`sql`](Self::sql) as a user with all rights, for example for
    /// `SET GLOBAL read_only = 1`.
    pub async fn sql_as_admin(&self, statements: &str) -> Result<String, LabError> {
        self.options.admin(self.addr())?.run(statements).await
    }
}

impl Builder<MariaDb> {
    /// Lets each commit reach the disk before its reply. Default: off, so that a commit survives
    /// the end of the server, but not a crash of the machine.
    pub fn durable(mut self) -> Self {
        self.options.durable = true;
        self
    }

    /// Offers TLS, with a certificate and its key as PEM. Default: none is offered (MariaDB from
    /// 11.4 makes a certificate of its own).
    pub fn tls(mut self, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        self.options.tls = Some(Tls { certificate: certificate.into(), key: key.into() });
        self
    }

    /// Refuses connections without TLS, which [`tls`](Self::tls) offers. Default: both are accepted.
    pub fn tls_only(mut self) -> Self {
        self.options.demands.only = true;
        self
    }

    /// Checks the certificates of clients against this authority, as PEM. A user that is made with
    /// `REQUIRE X509` must show one. Default: no client shows a certificate.
    pub fn client_authority(mut self, authority: impl Into<String>) -> Self {
        self.options.demands.clients = Some(authority.into());
        self
    }
}

impl Kind for MariaDb {
    type Options = MariaDbOptions;

    fn new(server: Server, options: MariaDbOptions) -> Self {
        Self { server, options }
    }
}

impl Deref for MariaDb {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
