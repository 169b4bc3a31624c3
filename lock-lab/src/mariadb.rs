//! A private MariaDB.

mod counters;
mod options;

use self::options::MariaDbOptions;
use crate::{
    Builder, LabError, Server,
    builder::{self, Kind},
};

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

builder::kind!(MariaDb);

impl MariaDb {
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

    /// Ends the connections of the last test, whose program may still be at its end, and removes
    /// what it has made: tables and users.
    pub async fn empty(&self) -> Result<(), LabError> {
        // One client for all of it: each start of one takes a twentieth of a second of the machine.
        // The server's own users and the lab's are of one host. A connection may end by itself.
        const EMPTY: &str = "DELIMITER //
            BEGIN NOT ATOMIC
                DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
                WHILE EXISTS (SELECT 1 FROM information_schema.processlist
                        WHERE user NOT IN ('admin', 'system user', 'event_scheduler')) DO
                    FOR it IN (SELECT id FROM information_schema.processlist
                            WHERE user NOT IN ('admin', 'system user', 'event_scheduler')) DO
                        KILL it.id;
                    END FOR;
                    DO SLEEP(0.01);
                END WHILE;
                FOR it IN (SELECT user FROM mysql.user WHERE host = '%') DO
                    EXECUTE IMMEDIATE CONCAT('DROP USER `', it.user, '`@`%`');
                END FOR;
            END//
            DELIMITER ;
            DROP DATABASE lab;
            CREATE DATABASE lab;";
        self.sql_as_admin(EMPTY).await.map(drop)
    }
}

impl Builder<MariaDb> {
    /// Lets each commit reach the disk before its reply. Default: off, so that a commit survives
    /// the end of the server, but not a crash of the machine.
    pub fn durable(mut self) -> Self {
        self.options.durable = true;
        self
    }

    /// Refuses connections without TLS. Call it after [`tls`](Self::tls). Default: both are accepted.
    pub fn tls_only(mut self) -> Self {
        self.common.tls.iter_mut().for_each(|tls| tls.only = true);
        self.options.is_tls_only = true;
        self
    }
}

impl Kind for MariaDb {
    type Options = MariaDbOptions;

    fn new(server: Server, options: MariaDbOptions) -> Self {
        Self { server, options }
    }
}
