//! Opens connections to servers, in plain text or with TLS.

use std::{io, sync::Arc, time::Duration};

use lock_core::{
    Clock, Encryption, Tls,
    duration::shown,
    keep::{
        errors::invalid,
        tls::{client_config, server_name},
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, ToSocketAddrs},
    task::spawn_blocking,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, ClientConfig, RootCertStore, crypto::ring},
};

use crate::wire::tls_error::explained;

/// The most time for the answer to a greeting.
const GREETING: Duration = Duration::from_millis(800);

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
        if tls.mode == Encryption::Off {
            return Ok(Self { tls: None, limit });
        }
        if tls.mode != Encryption::Verify {
            return Err(invalid("tls", "prefer", "off or verify"));
        }
        client_config(tls)?;
        Ok(Self { tls: Some(Arc::new(tls.clone())), limit })
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
        let name = server_name(&tls, name_of(host)).map_err(io::Error::other)?;
        // Certificates are renewed, so their files are read each time.
        let config = spawn_blocking(move || client_config(&tls)).await;
        let config = config.map_err(io::Error::other)?.map_err(io::Error::other)?;
        let opened = TlsConnector::from(config).connect(name, stream).await;
        Ok(Box::new(opened.map_err(explained)?))
    }
}

/// Whether a server answers a greeting of TLS. Nothing else is sent, since no certificate is
/// trusted.
pub(crate) async fn speaks_tls(host: &str) -> bool {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions();
    let name = server_name(&Tls::default(), name_of(host));
    let (Ok(config), Ok(name)) = (config, name) else { return false };
    let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let greeting = async {
        let stream = TcpStream::connect(host).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    };
    let Some(Err(error)) = Clock::Boot.timeout(GREETING, greeting).await else { return false };
    let answer = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    answer.is_some_and(|answer| !matches!(answer, rustls::Error::InvalidMessage(_)))
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
