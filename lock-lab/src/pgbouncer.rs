//! A private PgBouncer before a PostgreSQL.

use std::{
    fmt, fs,
    net::SocketAddr,
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;

use crate::{
    Builder, Counters, LabError, Server,
    builder::Kind,
    options::Common,
    store::{Answer, Arguments, Store},
};

const PROGRAM: &str = "pgbouncer";
const INSTALL: &str = "apt-get install pgbouncer";
const FILE: &str = "pgbouncer.ini";

/// A private PgBouncer before a PostgreSQL.
///
/// [`Server::url`] names the database `lab`, also where another one is behind it. Whatever login a
/// client has, it gets the one of the URL of the PostgreSQL.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
    options: PgBouncerOptions,
}

impl PgBouncer {
    /// Returns the options of one before the PostgreSQL with this URL.
    pub fn before(server: &str) -> Builder<Self> {
        let builder = Builder::<Self>::default();
        *builder.options.target() = server.to_owned();
        builder
    }

    /// Leads to the server and the database of another URL. A session that a client has just now
    /// ends when the client leaves it.
    pub fn lead_to(&self, server: &str) -> Result<(), LabError> {
        *self.options.target() = server.to_owned();
        self.options.write(self.home(), self.addr())?;
        self.server.reload();
        Ok(())
    }
}

impl Builder<PgBouncer> {
    /// Adds a line to the section `[pgbouncer]` of its configuration. Default: none.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.options.lines.push(line.into());
        self
    }
}

impl Deref for PgBouncer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Kind for PgBouncer {
    type Options = PgBouncerOptions;

    fn new(server: Server, options: PgBouncerOptions) -> Self {
        Self { server, options }
    }
}

/// The options of a private PgBouncer.
#[derive(Clone, Default)]
pub struct PgBouncerOptions {
    /// The URL of the server behind it, which may change.
    target: Arc<Mutex<String>>,
    lines: Vec<String>,
}

impl PgBouncerOptions {
    fn target(&self) -> MutexGuard<'_, String> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, home: &Path, addr: SocketAddr) -> Result<(), LabError> {
        let text = format!(
            "[databases]\nlab = {}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = any\n{}\n",
            connection(&self.target()),
            addr.ip(),
            addr.port(),
            self.lines.join("\n")
        );
        fs::write(home.join(FILE), text).map_err(LabError::io("writing pgbouncer.ini"))
    }
}

/// The URL shows the password.
impl fmt::Debug for PgBouncerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgBouncerOptions").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl Store for PgBouncerOptions {
    fn scheme(&self) -> &'static str {
        "postgres"
    }

    fn login(&self) -> String {
        "lab:any@".to_owned()
    }

    fn path(&self) -> &'static str {
        "/lab"
    }

    fn user(&self) -> Option<&'static str> {
        Some("postgres")
    }

    fn installed(&self, common: &Common) -> Result<(), LabError> {
        common.program(PROGRAM, INSTALL).map(drop)
    }

    fn command(&self, common: &Common, home: &Path, addrs: &[SocketAddr]) -> Arguments {
        self.write(home, addrs[0])?;
        let program = common.program(PROGRAM, INSTALL)?;
        let mut command = vec![program.into_os_string(), home.join(FILE).into()];
        command.extend(common.args.iter().cloned());
        Ok(command)
    }

    fn probe(&self, addr: SocketAddr) -> Answer<'_, ()> {
        Box::pin(async move {
            let connected = TcpStream::connect(addr).await;
            connected.map(drop).map_err(LabError::io("connecting to PgBouncer"))
        })
    }

    fn counters(&self, _addr: SocketAddr) -> Answer<'_, Counters> {
        let reply = "the lab does not read its numbers".to_owned();
        Box::pin(async move { Err(LabError::Reply { server: "pgbouncer", reply }) })
    }
}

/// A server's URL as a line of PgBouncer; an empty one for a URL that lacks a part.
fn connection(url: &str) -> String {
    let line = || {
        let (_, rest) = url.split_once("://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, password) = login.split_once(':')?;
        let (addr, database) = place.split_once('/')?;
        let (host, port) = addr.rsplit_once(':')?;
        let password = percent_decode_str(password).decode_utf8_lossy();
        Some(format!("host={host} port={port} dbname={database} user={user} password='{password}'"))
    };
    line().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_a_line() {
        let line = "host=127.0.0.1 port=7 dbname=lab user=me password='a@b'";
        assert_eq!(connection("postgres://me:a%40b@127.0.0.1:7/lab"), line);
        assert_eq!(connection("postgres://127.0.0.1"), "");
    }
}
