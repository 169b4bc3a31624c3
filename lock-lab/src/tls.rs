//! TLS of a server.

use std::{fmt, fs, path::Path};

use crate::LabError;

/// A server's certificate and its key, as PEM, and what it demands of clients. `Debug` hides it.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// The authority of the clients' certificates.
    pub(crate) clients: Option<String>,
    /// Whether connections without TLS are refused, where a server takes both.
    pub(crate) only: bool,
}

impl Tls {
    pub(crate) const CERTIFICATE: &str = "tls-certificate.pem";
    pub(crate) const KEY: &str = "tls-key.pem";
    /// The authority of the clients' certificates.
    pub(crate) const CLIENTS: &str = "tls-clients.pem";

    /// Writes all to a server's folder, which only its owner can read.
    pub(crate) fn write(&self, home: &Path) -> Result<(), LabError> {
        let own = [(Self::CERTIFICATE, &self.certificate), (Self::KEY, &self.key)];
        for (name, text) in own.into_iter().chain(self.clients.iter().map(|it| (Self::CLIENTS, it)))
        {
            fs::write(home.join(name), text).map_err(LabError::io(format!("writing {name}")))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
