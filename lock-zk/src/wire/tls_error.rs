//! Says why TLS failed, and what to do.

use std::io::{
    self,
    ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof},
};

use lock_core::keep::tls_cause::{cause, is_about_certificates};
use tokio_rustls::rustls::Error as Tls;

/// What to do about a certificate for another host name.
const OTHER_NAME: &str = "option server_name";

/// What a server does that reads a greeting of TLS as a request of ZooKeeper.
const CLOSED: &str = "the server closed the connection in the TLS handshake: \
                      it may speak plain text at this port (secureClientPort is another one)";

/// The kind of an error that says that one side does not accept the other one's certificate: trying
/// again changes nothing. No other error of a connection has it.
pub(crate) const CERTIFICATE_REFUSED: io::ErrorKind = io::ErrorKind::InvalidData;

/// Returns the error with a text for people. It has the text of the original, too.
pub(crate) fn explained(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()) {
        Some(tls) => {
            let is_refused = is_about_certificates(tls);
            let kind = if is_refused { CERTIFICATE_REFUSED } else { io::ErrorKind::Other };
            io::Error::new(kind, format!("TLS: {}", cause(tls, OTHER_NAME)))
        }
        None => match error.kind() {
            kind @ (UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) => {
                io::Error::new(kind, CLOSED)
            }
            _ => error,
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::CertificateError;

    use super::*;

    #[test]
    fn a_certificate_that_is_not_accepted_and_a_server_without_tls_are_told_apart() {
        let error = Tls::InvalidCertificate(CertificateError::NotValidForName);
        let refused = explained(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(refused.kind(), CERTIFICATE_REFUSED, "{refused}");
        assert!(refused.to_string().contains("option server_name"), "{refused}");
        let closed = explained(io::ErrorKind::UnexpectedEof.into()).to_string();
        assert!(closed.contains("plain text"), "{closed}");
        let refused = explained(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let other = explained(io::Error::new(io::ErrorKind::InvalidData, Tls::DecryptError));
        assert_ne!(other.kind(), CERTIFICATE_REFUSED, "{other}");
    }
}
