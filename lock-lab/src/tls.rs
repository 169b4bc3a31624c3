//! The certificate of a server.

use std::{fmt, fs, path::Path};

use crate::LabError;

/// A certificate and its key, as PEM. `Debug` hides them.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Tls {
    pub(crate) const CERTIFICATE: &str = "tls-certificate.pem";
    pub(crate) const KEY: &str = "tls-key.pem";

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
