//! The certificate of a server.

use std::{fmt, fs, path::Path};

use crate::LabError;

/// A certificate and its key, as PEM. `Debug` hides them.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What a server demands of the clients that use TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands {
    /// Refuses connections without TLS.
    pub(crate) only: bool,
    /// The authority of the clients' certificates, as PEM.
    pub(crate) clients: Option<String>,
}

impl Demands {
    /// Writes the authority to a server's folder.
    pub(crate) fn write(&self, home: &Path) -> Result<(), LabError> {
        let Some(clients) = &self.clients else { return Ok(()) };
        let name = Tls::CLIENTS;
        fs::write(home.join(name), clients).map_err(LabError::io(format!("writing {name}")))
    }
}

impl Tls {
    pub(crate) const CERTIFICATE: &str = "tls-certificate.pem";
    pub(crate) const KEY: &str = "tls-key.pem";
    /// The authority of the clients' certificates.
    pub(crate) const CLIENTS: &str = "tls-clients.pem";

    /// Writes both to a server's folder, which only its owner can read.
    pub(crate) fn write(&self, home: &Path) -> Result<(), LabError> {
        for (name, text) in [(Self::CERTIFICATE, &self.certificate), (Self::KEY, &self.key)] {
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
