//! A relay to a server whose certificate has another name than its host.
//!
//! The client library checks a certificate for the host that it connects to, and for no other name.
//! Through a socket of this machine it checks the certificate for whatever host its options name.
//! So it connects to a socket of this process, and a relay copies bytes between that and the server.
//! TLS goes from the library to the server: what the relay copies is encrypted.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    Effect, Error, Result,
    keep::{errors::unavailable, poison::lock},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixListener, UnixStream},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{error::closed, layout::dialect::Dialect, wire::unseen::Unseen};

/// Pause if the process has no file descriptor left for a connection.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time that the server takes no byte: as long as the longest limit of a request. Without
/// it, a connection that the library has given up would last until the kernel gives up.
const STALL: Duration = Duration::from_mins(1);
/// Most bytes that are copied at once.
const PART: usize = 16 * 1024;

/// A relay to one host. Dropping it removes its socket. A connection through it lasts as long as
/// the library and the server keep it.
pub(super) struct Relay {
    dialect: Dialect,
    target: Arc<Target>,
    door: Mutex<Door>,
}

/// The server, and why it was not reached.
struct Target {
    host: String,
    port: u16,
    unseen: Unseen,
}

enum Door {
    /// Opened by the first connection: only then there is a runtime for sure.
    Shut,
    Open(Socket),
    /// The client is closed.
    Closed,
}

/// A socket in a directory that only this user may enter.
struct Socket {
    folder: TempDir,
    accepts: AbortHandle,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

impl Relay {
    /// Does nothing yet.
    pub(super) fn new(dialect: Dialect, host: String, port: u16, unseen: Unseen) -> Self {
        let target = Arc::new(Target { host, port, unseen });
        Self { dialect, target, door: Mutex::new(Door::Shut) }
    }

    /// The socket to connect to. It is another one only if something has removed the last one, as
    /// programs do that tidy up old temporary files.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there cannot be one now, [`Error::InvalidOption`] if the path of
    /// the directory for temporary files is too long, [`Error::Closed`].
    pub(super) fn socket(&self) -> Result<PathBuf> {
        let mut door = lock(&self.door);
        match &*door {
            Door::Closed => return Err(closed(self.dialect)),
            Door::Open(socket) if self.path(&socket.folder).exists() => {
                return Ok(self.path(&socket.folder));
            }
            _ => {}
        }
        let socket = self.open().map_err(|why| self.unopened(&why))?;
        let path = self.path(&socket.folder);
        *door = Door::Open(socket);
        Ok(path)
    }

    /// Removes the socket. The connections that there are may end properly.
    pub(super) fn close(&self) {
        *lock(&self.door) = Door::Closed;
    }

    /// PostgreSQL's client library makes this name out of the port; MySQL's takes any.
    fn path(&self, folder: &TempDir) -> PathBuf {
        folder.path().join(format!(".s.PGSQL.{}", self.target.port))
    }

    fn open(&self) -> io::Result<Socket> {
        let mode = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("distlock-").permissions(mode).tempdir()?;
        let listener = UnixListener::bind(self.path(&folder))?;
        let accepts = tokio::spawn(accept(listener, self.target.clone())).abort_handle();
        Ok(Socket { folder, accepts })
    }

    fn unopened(&self, why: &io::Error) -> Error {
        let folder = tempfile::env::temp_dir().display().to_string();
        match why.kind() {
            io::ErrorKind::InvalidInput => Error::InvalidOption {
                option: "environment variable TMPDIR".to_owned(),
                value: folder,
                allowed: "a shorter path: with server_name, the client has a socket there"
                    .to_owned(),
            },
            _ => {
                let why = format!("no socket in {folder}, which server_name needs: {why}");
                unavailable(self.dialect.store(), "connect", Effect::None, why)
            }
        }
    }
}

async fn accept(listener: UnixListener, target: Arc<Target>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => drop(tokio::spawn(carry(client, target.clone()))),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// One connection: ends as soon as one side ends, or the library gives up before the server is
/// reached.
async fn carry(mut client: UnixStream, target: Arc<Target>) {
    let mut early = Vec::with_capacity(PART);
    let dialed = tokio::select! {
        dialed = target.dial() => dialed,
        () = hear(&mut client, &mut early) => return,
    };
    match dialed {
        Ok(server) => copy(client, server, early).await,
        Err(why) => {
            let Target { host, port, unseen } = &*target;
            // Before the library sees the end of its connection, which is when `client` is dropped.
            unseen.note(&why, format!("no connection to {host}:{port}: {why}"));
        }
    }
}

impl Target {
    async fn dial(&self) -> io::Result<TcpStream> {
        let server = TcpStream::connect((self.host.as_str(), self.port)).await?;
        server.set_nodelay(true)?;
        Ok(server)
    }
}

/// Keeps what the library sends before the server is reached. Returns when it has hung up.
async fn hear(client: &mut UnixStream, early: &mut Vec<u8>) {
    while client.read_buf(early).await.is_ok_and(|read| read > 0) {}
}

/// Neither the library nor a server half-closes a connection and goes on: the end of one direction
/// is the end of both.
async fn copy(mut client: UnixStream, mut server: TcpStream, early: Vec<u8>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let forth = async {
        let mut part = early;
        loop {
            timeout(STALL, to_server.write_all(&part)).await??;
            part.clear();
            if from_client.read_buf(&mut part).await? == 0 {
                return io::Result::Ok(());
            }
        }
    };
    tokio::select! {
        _ = forth => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}
