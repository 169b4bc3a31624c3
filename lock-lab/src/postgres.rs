//! A private PostgreSQL.

mod counters;
mod options;

use std::fs;

use self::options::PostgresOptions;
use crate::{
    Builder, LabError, Server,
    builder::{self, Kind},
};

/// A private PostgreSQL, without replication.
///
/// [`Server::url`] names the user `lab`, a password made for this server, and the database `lab`.
/// The user owns that database, may make other users and see all connections. In all else it is an
/// ordinary user. By default a commit survives a kill -9 of the server, but not a crash of the
/// machine.
///
/// A PostgreSQL is one process per connection and some more. [`Server::stop`], [`Server::resume`]
/// and [`Server::kill`] reach all of them.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    options: PostgresOptions,
}

builder::kind!(Postgres);

impl Postgres {
    /// Runs statements as the user `lab` on a connection of its own, until one fails, and returns
    /// the rows as text: one line each, tabs between the fields, `NULL` for null.
    ///
    /// They show up in [`Server::counters`] like those of any other client.
    pub async fn sql(&self, statements: &str) -> Result<String, LabError> {
        let (client, statements) = (self.options.client(self.addr())?, statements.to_owned());
        self.ask(async move { client.run(&statements).await }).await
    }

    /// Same as [`sql`](Self::sql) as a user with all rights, for example for `ALTER SYSTEM`.
    pub async fn sql_as_admin(&self, statements: &str) -> Result<String, LabError> {
        self.options.admin(self.addr())?.run(statements).await
    }

    /// Ends the connections of the last test, whose program may still be at its end, and removes
    /// what it has made: tables, schemas and users.
    pub async fn empty(&self) -> Result<(), LabError> {
        const EMPTY: &str = "
            SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();
            DROP OWNED BY lab CASCADE;
            SELECT format('DROP OWNED BY %1$I; DROP ROLE %1$I', rolname) FROM pg_roles
                WHERE rolname NOT IN ('lab', 'postgres') AND NOT starts_with(rolname, 'pg_')
                \\gexec
            SELECT 'others' FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();";
        while self.sql_as_admin(EMPTY).await?.contains("others") {}
        Ok(())
    }

    /// Starts a standby with the data that this server has now, and with the same passwords. It
    /// follows no primary: it is one that lags, however long it runs. This server is restarted.
    pub async fn lagging_standby(&self) -> Result<Self, LabError> {
        let mut builder = Self::builder();
        builder.options.password = self.options.password.clone();
        let standby = builder.start().await?;
        standby.restore(&self.back_up().await?).await?;
        standby.kill();
        let signal = standby.home().join("data/standby.signal");
        fs::write(signal, "").map_err(LabError::io("writing standby.signal"))?;
        standby.restart().await?;
        Ok(standby)
    }

    /// Makes a standby a primary.
    pub async fn promote(&self) -> Result<(), LabError> {
        self.sql_as_admin("SELECT pg_promote()").await.map(drop)
    }
}

impl Builder<Postgres> {
    /// Lets each commit reach the disk before its reply. Default: off, so that a commit survives
    /// the end of the server, but not a crash of the machine.
    pub fn durable(mut self) -> Self {
        self.options.durable = true;
        self
    }

    /// Refuses connections without TLS. Call it after [`tls`](Self::tls). Default: both are accepted.
    pub fn tls_only(mut self) -> Self {
        self.common.tls.iter_mut().for_each(|tls| tls.only = true);
        self
    }
}

impl Kind for Postgres {
    type Options = PostgresOptions;

    fn new(server: Server, options: PostgresOptions) -> Self {
        Self { server, options }
    }
}
