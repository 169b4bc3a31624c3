//! Says why TLS failed, and what to do.

use std::{fmt, io};

use lock_core::keep::tls::{cause, is_about_certificates};

/// What to do about a certificate for another host name.
const OTHER_NAME: &str = "option server_name";

/// What a server does that reads a greeting of TLS as a request of ZooKeeper.
const CLOSED: &str = "the server closed the connection in the TLS handshake: \
                      it may speak plain text at this port (secureClientPort is another one)";

/// One side does not accept the other one's certificate: trying again changes nothing.
#[derive(Debug)]
struct CertificateRefused(String);

impl fmt::Display for CertificateRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateRefused {}

/// The error of a connection whose certificates are not accepted.
pub(crate) fn certificate_refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, CertificateRefused(text))
}

/// Whether one side does not accept the other one's certificate.
pub(crate) fn is_certificate_refused(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<CertificateRefused>())
}

/// Returns the error with a text for people. It has the text of the original, too.
pub(crate) fn explained(error: io::Error) -> io::Error {
    let text = match cause(&error, OTHER_NAME) {
        Some(cause) if is_about_certificates(&error) => {
            return certificate_refused(format!("TLS: {cause}"));
        }
        Some(cause) => format!("TLS: {cause}"),
        None if is_broken(error.kind()) => CLOSED.to_owned(),
        None => return error,
    };
    io::Error::new(error.kind(), text)
}

fn is_broken(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_not_accepted_and_a_server_without_tls_are_told_apart() {
        assert!(is_certificate_refused(&certificate_refused("..".to_owned())));
        let closed = explained(io::ErrorKind::UnexpectedEof.into()).to_string();
        assert!(closed.contains("plain text"), "{closed}");
        let refused = explained(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!is_certificate_refused(&refused));
    }
}
