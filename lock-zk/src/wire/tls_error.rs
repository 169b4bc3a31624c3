//! Says why TLS failed, and what to do.

use std::io::{
    self,
    ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof},
};

use lock_core::keep::tls::{cause, is_about_certificates};

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
    match cause(&error, OTHER_NAME) {
        Some(cause) => {
            let is_refused = is_about_certificates(&error);
            let kind = if is_refused { CERTIFICATE_REFUSED } else { io::ErrorKind::Other };
            io::Error::new(kind, format!("TLS: {cause}"))
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
    use super::*;

    #[test]
    fn a_server_without_tls_is_told() {
        let closed = explained(io::ErrorKind::UnexpectedEof.into()).to_string();
        assert!(closed.contains("plain text"), "{closed}");
        let refused = explained(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
