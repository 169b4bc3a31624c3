//! What is wrong when no encrypted connection comes about.

use std::time::Duration;

use lock_core::{BoxError, Clock, Tls, keep::tls::Handshake};
use tokio::{io::AsyncReadExt, net::TcpStream};

/// The server ends the connection in place of a greeting, or greets in another way.
pub(super) const NO_TLS: &str = "the server does not speak TLS on this port, or ends each connection \
                                 (tls=off goes without it)";

/// The words of the TLS library, and what they mean for the one who configures it.
const CAUSES: [(&str, &str); 9] = [
    ("certificate expired", "the server's certificate has expired"),
    ("not valid yet", "the server's certificate is not valid yet"),
    (
        "not valid for name",
        "the server's certificate is for another host (server_name=.. sets the expected name)",
    ),
    (
        "UnknownIssuer",
        "the server's certificate is of an authority that is not trusted (ca=.. names one)",
    ),
    (
        "BadSignature",
        "the server's certificate is of another authority of the same name (ca=.. names one)",
    ),
    ("InvalidContentType", NO_TLS),
    ("tls handshake eof", NO_TLS),
    ("CertificateRequired", "the server demands a certificate of the client (cert=.. and key=..)"),
    ("received fatal alert", "the server refuses the certificate of the client, or its TLS"),
];

/// What the TLS library says when it does not accept the server's certificate, and the alerts of a
/// server that does not accept the client's.
const CERTIFICATES: [&str; 8] = [
    "invalid peer certificate",
    "CertificateRequired",
    "alert: BadCertificate",
    "alert: CertificateUnknown",
    "alert: CertificateExpired",
    "alert: CertificateRevoked",
    "alert: UnsupportedCertificate",
    "alert: UnknownCA",
];

/// Whether an error says that one side does not accept the other one's certificate.
pub(super) fn is_about_a_certificate(text: &str) -> bool {
    CERTIFICATES.iter().any(|words| text.contains(words))
}

/// Adds the meaning to an error of an encrypted connection, in front of its own words.
pub(crate) fn explained(text: String) -> String {
    match CAUSES.iter().find(|(words, _)| text.contains(words)) {
        Some((_, meaning)) => format!("{meaning}: {text}"),
        None => text,
    }
}

/// Returns why the server at `endpoint` ends an encrypted connection, if it does. gRPC does not tell,
/// so this finds out on a connection of its own. A server looks at the certificate of a client when
/// the client believes that all is well.
pub(super) async fn refusal(endpoint: &str, tls: &Tls, limit: Duration) -> Option<String> {
    match Box::pin(Clock::Boot.timeout(limit, greet(endpoint, tls))).await {
        Some(Err(refusal)) => Some(refusal.to_string()),
        _ => None,
    }
}

/// Waits for the first byte that the server sends: it belongs to HTTP/2 if all is well.
async fn greet(endpoint: &str, tls: &Tls) -> Result<(), BoxError> {
    let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
    let handshake = Handshake::new(tls, host)?.protocol(b"h2");
    let mut stream = handshake.with(TcpStream::connect(endpoint).await?).await?;
    stream.read_u8().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meaning_comes_first() {
        let text = "invalid peer certificate: UnknownIssuer";
        let said = explained(text.to_owned());
        assert!(said.contains("not trusted") && said.ends_with(text), "{said}");
        assert_eq!(explained("tcp connect error".to_owned()), "tcp connect error");
        assert!(is_about_a_certificate(&said));
        assert!(!is_about_a_certificate("received fatal alert: ProtocolVersion"));
    }
}
