//! A relay to a server whose certificate has another name than its host.
//!
//! The client library checks a certificate for the host that it connects to, and for no other name.
//! Through a socket of this machine it checks the certificate for whatever host its options name.
//! So it connects to a socket of this process, and a relay copies bytes between that and the server.
//! TLS goes from the library to the server: what the relay copies is encrypted.

#[cfg(unix)]
mod carry;

use std::{
    io::{self, ErrorKind},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use lock_core::{
    Effect, Error, Result,
    keep::{errors::unavailable, poison::lock},
};
use tempfile::TempDir;
use tokio::{sync::watch, task::AbortHandle};

use crate::{error::closed, layout::dialect::Dialect, wire::unseen::Unseen};

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
    /// Each connection has a receiver.
    carried: watch::Sender<()>,
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
        let target = Target { host, port, unseen, carried: watch::Sender::default() };
        let target = Arc::new(target);
        Self { dialect, target, door: Mutex::new(Door::Shut) }
    }

    /// The socket to connect to. It is another one only if the last one is gone, as by a program that
    /// tidies up old temporary files.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there cannot be one now, [`Error::InvalidOption`] if the directory
    /// for temporary files cannot have one, [`Error::Unsupported`] if no directory can, and
    /// [`Error::Closed`].
    pub(super) fn socket(&self) -> Result<PathBuf> {
        let mut door = lock(&self.door);
        match &*door {
            Door::Closed => return Err(closed(self.dialect)),
            Door::Open(Socket { folder, accepts }) => {
                let path = self.path(folder);
                // Its task ends with the runtime, and the client may have come to another one.
                if !accepts.is_finished() && path.exists() {
                    return Ok(path);
                }
            }
            Door::Shut => {}
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

    /// Waits until there is no connection any more: what the library has said at last is with the
    /// server then.
    pub(super) async fn ended(&self) {
        self.target.carried.closed().await;
    }

    /// PostgreSQL's client library makes this name out of the port; MySQL's takes any.
    fn path(&self, folder: &TempDir) -> PathBuf {
        folder.path().join(format!(".s.PGSQL.{}", self.target.port))
    }

    #[cfg(unix)]
    fn open(&self) -> io::Result<Socket> {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("distlock-").permissions(mode).tempdir()?;
        let listener = tokio::net::UnixListener::bind(self.path(&folder))?;
        let accepts = tokio::spawn(carry::accept(listener, self.target.clone())).abort_handle();
        Ok(Socket { folder, accepts })
    }

    /// The client library has no such sockets there.
    #[cfg(not(unix))]
    fn open(&self) -> io::Result<Socket> {
        Err(ErrorKind::Unsupported.into())
    }

    fn unopened(&self, why: &io::Error) -> Error {
        let folder = tempfile::env::temp_dir().display().to_string();
        let invalid = |allowed: &str| Error::InvalidOption {
            option: "environment variable TMPDIR".to_owned(),
            value: folder.clone(),
            allowed: allowed.to_owned(),
        };
        match why.kind() {
            ErrorKind::InvalidInput => {
                invalid("a shorter path: with server_name, the client has a socket there")
            }
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                invalid("a directory to write to: with server_name, the client has a socket there")
            }
            ErrorKind::Unsupported => Error::Unsupported {
                store: self.dialect.store(),
                what: "be used with server_name: this system has no Unix sockets".to_owned(),
            },
            _ => {
                let why = format!("no socket in {folder}, which server_name needs: {why}");
                unavailable(self.dialect.store(), "connect", Effect::None, why)
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, UnixStream},
    };

    use super::*;

    /// A server, and a relay to it.
    async fn start() -> (TcpListener, Relay) {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let relay = Relay::new(Dialect::Postgres, "127.0.0.1".to_owned(), port, Unseen::default());
        (server, relay)
    }

    /// The library sends a request before it reads that the server has ended the connection.
    #[tokio::test]
    async fn the_last_words_of_a_server_are_heard() {
        let (listener, relay) = start().await;
        let mut client = UnixStream::connect(relay.socket().unwrap()).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut heard = [0; 5];
        server.read_exact(&mut heard).await.unwrap();
        server.write_all(b"bye").await.unwrap();
        drop(server);
        let mut words = Vec::new();
        client.read_to_end(&mut words).await.unwrap();
        assert_eq!((&heard, words.as_slice()), (b"hello", b"bye".as_slice()));
        client.write_all(b"one more").await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_outlasts_the_socket_and_ends_with_the_library() {
        let (listener, relay) = start().await;
        let path = relay.socket().unwrap();
        let mut client = UnixStream::connect(&path).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        relay.close();
        assert!(!path.parent().unwrap().exists());
        assert!(matches!(relay.socket(), Err(Error::Closed { .. })));
        client.write_all(b"goodbye").await.unwrap();
        drop(client);
        let mut words = Vec::new();
        server.read_to_end(&mut words).await.unwrap();
        assert_eq!(words, b"goodbye");
    }

    #[test]
    fn another_runtime_gets_another_socket() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let relay = Relay::new(Dialect::MySql, "localhost".to_owned(), 1, Unseen::default());
        let (first, second) = (runtime().unwrap(), runtime().unwrap());
        let path = first.block_on(async { relay.socket().unwrap() });
        assert_eq!(first.block_on(async { relay.socket().unwrap() }), path);
        drop(first);
        assert_ne!(second.block_on(async { relay.socket().unwrap() }), path);
        assert!(!path.exists());
    }
}
