//! Says why TLS failed, and what to do.

use std::io;

use rustls::{AlertDescription as Alert, CertificateError as Bad, Error as Tls};
use sqlx::Error;

/// The error of a connection in plain words, if TLS or its absence is the cause.
pub(crate) fn explained(error: &Error) -> Option<String> {
    match error {
        Error::Io(error) => of_tls(error).map(|cause| format!("TLS: {cause}")),
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
    of_tls(error).is_some() || error.kind() == io::ErrorKind::InvalidData
}

fn of_tls(error: &io::Error) -> Option<String> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()).map(cause)
}

/// The words of PostgreSQL, and of MySQL and MariaDB.
fn is_plain_refused(message: &str) -> bool {
    message.contains("no encryption") || message.contains("require_secure_transport")
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
        Bad::UnknownIssuer => {
            "is signed by itself, or of an authority that is not trusted: option ca"
        }
        Bad::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "names no host: it needs a subjectAltName, since its subject does not count"
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            "is for another host name: name the host as in the certificate (DNS or /etc/hosts leads \
             there)"
        }
        Bad::BadSignature => "is not signed by the authority that it names: option ca",
        Bad::Revoked => "was revoked",
        Bad::Other(why) => match why.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "is one of an authority (CA:TRUE), as of a server that signs for itself: make one for \
                 the server that the authority signs, or one with CA:FALSE"
            }
            "UnsupportedCertVersion" => {
                "is one of X.509 version 1, which this client cannot take, also where it is not \
                 checked: make one of version 3"
            }
            _ => "is not valid",
        },
        _ => "is not valid",
    }
}

/// Whether a server tells with it that it wants another certificate of the client.
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

    #[test]
    fn each_cause_is_named() {
        for (error, expected) in [
            (Tls::InvalidCertificate(Bad::Expired), "has expired"),
            (Tls::InvalidCertificate(Bad::UnknownIssuer), "signed by itself"),
            (Tls::InvalidCertificate(Bad::NotValidForName), "another host name"),
            (Tls::AlertReceived(Alert::CertificateRequired), "options cert and key"),
        ] {
            let error = Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
            let shown = explained(&error).unwrap();
            assert!(shown.contains(expected), "{shown}");
        }
        assert_eq!(explained(&Error::Io(io::ErrorKind::ConnectionRefused.into())), None);
    }
}
