//! Opens connections to servers, in plain text or with TLS.

use std::{io, sync::Arc, time::Duration};

use lock_core::{
    Clock, Encryption, Tls,
    duration::shown,
    keep::tls::{Handshake, check},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, ToSocketAddrs},
    task::spawn_blocking,
};

use crate::wire::tls_error::explained;

/// A connection of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// How they are encrypted, if they are.
    tls: Option<Arc<Tls>>,
    /// The most time for one connection, with its TLS handshake.
    pub(crate) limit: Duration,
}

impl Dialer {
    /// Opens connections as this says.
    pub(crate) fn new(tls: &Tls, limit: Duration) -> lock_core::Result<Self> {
        check(tls)?;
        let encrypts = tls.mode != Encryption::Off;
        Ok(Self { tls: encrypts.then(|| Arc::new(tls.clone())), limit })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Connects to one of these addresses of a host.
    pub(crate) async fn connect(
        &self,
        host: &str,
        addrs: impl ToSocketAddrs,
    ) -> io::Result<Box<dyn Stream>> {
        let opened = Clock::Boot.timeout(self.limit, self.open(host, addrs)).await;
        opened.unwrap_or_else(|| {
            let silent = format!("no connection in {}", shown(self.limit));
            Err(io::Error::new(io::ErrorKind::TimedOut, silent))
        })
    }

    async fn open(&self, host: &str, addrs: impl ToSocketAddrs) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(addrs).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = self.tls.clone() else { return Ok(Box::new(stream)) };
        let name = name_of(host).to_owned();
        // Certificates are renewed, so their files are read each time.
        let handshake = spawn_blocking(move || Handshake::new(&tls, &name)).await;
        let handshake = handshake.map_err(io::Error::other)?.map_err(io::Error::other)?;
        let encrypted = Box::pin(handshake.with(stream)).await.map_err(explained)?;
        Ok(Box::new(encrypted))
    }
}

/// Returns a host without its port.
fn name_of(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_host_is_without_its_port() {
        for (host, name) in [("a.b:2181", "a.b"), ("10.0.0.1:1", "10.0.0.1"), ("[::1]:2", "[::1]")]
        {
            assert_eq!(name_of(host), name);
        }
    }
}
