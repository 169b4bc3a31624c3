//! Says why TLS failed, and what to do.

use std::{fmt, io};

use tokio_rustls::rustls::{AlertDescription as Alert, CertificateError as Bad, Error as Tls};

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
    let text = match error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()) {
        Some(tls) if is_about_a_certificate(tls) => {
            return certificate_refused(format!("TLS: {}", cause(tls)));
        }
        Some(tls) => format!("TLS: {}", cause(tls)),
        None if is_broken(error.kind()) => CLOSED.to_owned(),
        None => return error,
    };
    io::Error::new(error.kind(), text)
}

fn is_broken(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

fn is_about_a_certificate(error: &Tls) -> bool {
    match error {
        Tls::InvalidCertificate(_) => true,
        Tls::AlertReceived(alert) => is_about_ours(*alert),
        _ => false,
    }
}

fn cause(error: &Tls) -> String {
    match error {
        Tls::InvalidCertificate(bad) => {
            format!("the server's certificate {} ({error})", wrong(bad))
        }
        Tls::AlertReceived(alert) if is_about_ours(*alert) => format!(
            "the server demands a certificate of the client that it trusts: options cert and key \
             ({error})"
        ),
        Tls::InvalidMessage(_) => format!("the server answers without TLS ({error})"),
        _ => error.to_string(),
    }
}

fn wrong(bad: &Bad) -> &'static str {
    match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => "has expired",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => "is not valid yet",
        // The signature is wrong if another authority has the same name.
        Bad::UnknownIssuer | Bad::BadSignature => {
            "is of an authority that is not trusted: option ca"
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            "is for another host name: option server_name"
        }
        Bad::Revoked => "was revoked",
        _ => "is not valid",
    }
}

/// Whether a server tells with it that it wants another certificate of the client. Java's servers
/// tell so by the first two.
fn is_about_ours(alert: Alert) -> bool {
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::CertificateRequired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::CertificateExpired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(error: Tls) -> String {
        let explained = explained(io::Error::new(io::ErrorKind::InvalidData, error));
        assert!(is_certificate_refused(&explained), "{explained}");
        explained.to_string()
    }

    #[test]
    fn each_cause_is_named() {
        for (error, expected) in [
            (Tls::InvalidCertificate(Bad::Expired), "has expired"),
            (Tls::InvalidCertificate(Bad::UnknownIssuer), "option ca"),
            (Tls::InvalidCertificate(Bad::NotValidForName), "another host name"),
            (Tls::AlertReceived(Alert::CertificateRequired), "options cert and key"),
        ] {
            let shown = text(error);
            assert!(shown.contains(expected), "{shown}");
        }
        let closed = explained(io::ErrorKind::UnexpectedEof.into()).to_string();
        assert!(closed.contains("plain text"), "{closed}");
        let refused = explained(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!is_certificate_refused(&refused));
    }
}
