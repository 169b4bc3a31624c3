//! TLS by rustls, with ring's ciphers. No provider is set for the process, which belongs to the
//! program.

use std::{io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use crate::{Pem, Result, Tls, keep::errors::invalid};

/// An encrypted connection.
pub type Stream = TlsStream<TcpStream>;

/// The beginning of one encrypted connection. It is made anew for each, since certificates are
/// renewed.
pub struct Handshake {
    config: ClientConfig,
    name: ServerName<'static>,
}

impl Handshake {
    /// Reads the certificates. The server's must have the configured name, or that of the host.
    pub fn new(tls: &Tls, host: &str) -> Result<Self> {
        let name = server_name(tls, host)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid("tls", "", error.to_string()))?
            .with_root_certificates(roots(tls.ca.as_ref())?);
        let config = match (&tls.cert, &tls.key) {
            (Some(cert), Some(key)) => {
                let text = key.read("key")?;
                let private = PrivateKeyDer::from_pem_slice(text.as_bytes())
                    .map_err(|_| invalid("key", key.shown(), "no private key in PEM"))?;
                builder
                    .with_client_auth_cert(certificates("cert", cert)?, private)
                    .map_err(|error| invalid("key", key.shown(), error.to_string()))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Self { config, name })
    }

    /// Has the server agree on a protocol, such as `h2`.
    pub fn protocol(mut self, name: &[u8]) -> Self {
        self.config.alpn_protocols = vec![name.to_vec()];
        self
    }

    /// Encrypts a connection.
    pub async fn with(self, stream: TcpStream) -> io::Result<Stream> {
        TlsConnector::from(Arc::new(self.config)).connect(self.name, stream).await
    }
}

fn server_name(tls: &Tls, host: &str) -> Result<ServerName<'static>> {
    let name = tls.server_name.as_deref().unwrap_or(host);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    ServerName::try_from(bare.to_owned())
        .map_err(|_| invalid("server_name", name, "a DNS name or an IP address"))
}

fn roots(ca: Option<&Pem>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (found, value) = match ca {
        Some(ca) => (certificates("ca", ca)?, ca.shown()),
        None => (rustls_native_certs::load_native_certs().certs, "the system's".to_owned()),
    };
    // The system's may have some that rustls does not read; a given one must be read.
    let (read, unread) = roots.add_parsable_certificates(found);
    if read == 0 || (ca.is_some() && unread > 0) {
        return Err(invalid("ca", value, "certificates of authorities, in PEM"));
    }
    Ok(roots)
}

fn certificates(option: &str, pem: &Pem) -> Result<Vec<CertificateDer<'static>>> {
    let text = pem.read(option)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(invalid(option, pem.shown(), "certificates in PEM")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_certificate_is_refused() {
        let refused = |tls: &Tls| Handshake::new(tls, "h").err().unwrap().to_string();
        let error = refused(&Tls::verify().ca(Pem::Text("none here".to_owned())));
        assert!(error.contains("certificates in PEM"), "{error}");
        let error = refused(&Tls::verify().ca("/nowhere/ca.pem"));
        assert!(error.contains("not readable") && error.contains("/nowhere/ca.pem"), "{error}");
    }

    #[test]
    fn the_name_is_the_hosts_unless_it_is_given() {
        let name =
            |tls: &Tls, host: &str| server_name(tls, host).map(|name| name.to_str().to_string());
        assert_eq!(name(&Tls::verify(), "a.example").unwrap(), "a.example");
        assert_eq!(name(&Tls::verify(), "[::1]").unwrap(), "::1");
        assert_eq!(name(&Tls::verify().server_name("b"), "10.0.0.1").unwrap(), "b");
        assert!(name(&Tls::verify(), "a b").is_err());
    }
}
