//! Says why TLS failed, and what to do.

use std::io;

use tokio_rustls::rustls::{AlertDescription as Alert, CertificateError as Bad, Error};

/// The cause of a failure of TLS in plain words, with the library's own. `other_name` is what to do
/// if the certificate is for another host name.
pub fn cause(error: &io::Error, other_name: &str) -> Option<String> {
    let error = of_tls(error)?;
    Some(match error {
        Error::InvalidCertificate(bad) => {
            format!("the server's certificate {} ({error})", wrong(bad, other_name))
        }
        Error::AlertReceived(alert) if is_about_ours(*alert) => format!(
            "the server demands a certificate of the client that it trusts: options cert and key \
             ({error})"
        ),
        Error::InvalidMessage(_) => format!("the server answers without TLS ({error})"),
        _ => error.to_string(),
    })
}

/// Whether one side does not accept the other one's certificate: trying again changes nothing.
pub fn is_about_certificates(error: &io::Error) -> bool {
    match of_tls(error) {
        Some(Error::InvalidCertificate(_)) => true,
        Some(Error::AlertReceived(alert)) => is_about_ours(*alert),
        _ => false,
    }
}

fn of_tls(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn wrong(bad: &Bad, other_name: &str) -> String {
    let wrong = match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => "has expired",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => "is not valid yet",
        Bad::UnknownIssuer => {
            "is signed by itself, or of an authority that is not trusted: option ca"
        }
        Bad::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "names no host: it needs a subjectAltName, since its subject does not count"
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            return format!("is for another host name: {other_name}");
        }
        // Another authority has the same name.
        Bad::BadSignature => "is not signed by the authority that it names: option ca",
        Bad::Revoked => "was revoked",
        Bad::Other(why) => match why.to_string().as_str() {
            "CaUsedAsEndEntity" => {
                "is one of an authority (CA:TRUE), as of a server that signs for itself: make one \
                 for the server that the authority signs, or one with CA:FALSE"
            }
            "UnsupportedCertVersion" => {
                "is one of X.509 version 1, which this client cannot take, also where it is not \
                 checked: make one of version 3"
            }
            _ => "is not valid",
        },
        _ => "is not valid",
    };
    wrong.to_owned()
}

/// Whether a server tells with it that it wants another certificate of the client. Java's servers
/// tell so by the first ones.
fn is_about_ours(alert: Alert) -> bool {
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateRequired
            | Alert::UnknownCA
            | Alert::CertificateExpired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_named() {
        for (error, expected) in [
            (Error::InvalidCertificate(Bad::Expired), "has expired"),
            (Error::InvalidCertificate(Bad::UnknownIssuer), "option ca"),
            (Error::InvalidCertificate(Bad::NotValidForName), "another host name: do this"),
            (Error::AlertReceived(Alert::CertificateRequired), "options cert and key"),
        ] {
            let error = io::Error::other(error);
            let shown = cause(&error, "do this").unwrap();
            assert!(shown.contains(expected) && is_about_certificates(&error), "{shown}");
        }
        let unfinished = io::Error::other(Error::HandshakeNotComplete);
        assert!(cause(&unfinished, "").is_some() && !is_about_certificates(&unfinished));
        let refused = io::ErrorKind::ConnectionRefused.into();
        assert!(cause(&refused, "").is_none() && !is_about_certificates(&refused));
    }
}
