//! Says why TLS failed, and what to do.

use std::io;

use lock_core::keep::tls::cause;
use sqlx::Error;

/// What to do about a certificate for another host name.
const OTHER_NAME: &str = "name the host as in the certificate (DNS or /etc/hosts leads there)";

/// The error of a connection in plain words, if TLS or its absence is the cause.
pub(crate) fn explained(error: &Error) -> Option<String> {
    match error {
        Error::Io(error) => cause(error, OTHER_NAME).map(|cause| format!("TLS: {cause}")),
        Error::Tls(why) if why.to_string().contains("does not support TLS") => {
            Some("TLS: the server offers none, and tls=verify demands it".to_owned())
        }
        Error::Database(refused) if is_plain_refused(refused.message()) => {
            Some(format!("{}: the server demands TLS: option tls=verify", refused.message()))
        }
        _ => None,
    }
}

/// The error without certificates and keys: the client library shows the whole text that it cannot
/// read, as of the options of a pool.
pub(crate) fn without_texts(error: Error) -> Error {
    match &error {
        Error::Tls(why) if why.to_string().contains("-----BEGIN") => Error::Tls(UNREADABLE.into()),
        _ => error,
    }
}

const UNREADABLE: &str =
    "a text in PEM is no certificate (it is not shown: there may be a private key in it)";

/// Whether the server did not prove its identity, or does not accept the client's.
pub(crate) fn is_distrust(error: &io::Error) -> bool {
    cause(error, OTHER_NAME).is_some() || error.kind() == io::ErrorKind::InvalidData
}

/// The words of PostgreSQL, and of MySQL and MariaDB.
fn is_plain_refused(message: &str) -> bool {
    message.contains("no encryption") || message.contains("require_secure_transport")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_pem_is_not_shown() {
        let told =
            "Invalid certificate -----BEGIN PRIVATE KEY-----\nQXZ\n-----END PRIVATE KEY-----";
        let error = without_texts(Error::Tls(told.into()));
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("QXZ") && shown.contains("no certificate"), "{shown}");
        let other = without_texts(Error::Tls("no TLS here".into()));
        assert!(other.to_string().contains("no TLS here"), "{other}");
    }
}
