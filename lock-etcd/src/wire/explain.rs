//! Finds out why a server ended a first encrypted connection, on a connection of its own: gRPC does
//! not tell.

use std::time::Duration;

use lock_core::{BoxError, Clock, Tls, keep::tls::Handshake};
use tokio::{io::AsyncReadExt, net::TcpStream};

/// Returns why the server at `endpoint` ends an encrypted connection, if it does. A server looks at
/// the certificate of a client when the client believes that all is well.
pub(super) async fn refusal(endpoint: &str, tls: &Tls, limit: Duration) -> Option<String> {
    match Clock::Boot.timeout(limit, greet(endpoint, tls)).await {
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
