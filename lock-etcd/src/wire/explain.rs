//! Finds out why a first connection failed, on a connection of its own. gRPC tells neither that a
//! server expects TLS nor why it ended an encrypted connection.

use std::{sync::Arc, time::Duration};

use lock_core::{BoxError, Clock, Tls, keep::tls};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// The shortest beginning of TLS: a greeting of no length. A server that speaks TLS answers with an
/// alert, and any other one with no byte or with text.
const GREETING: [u8; 9] = [0x16, 3, 1, 0, 4, 1, 0, 0, 0];
const ALERT: u8 = 0x15;

/// Whether the server at `endpoint`, `host:port`, speaks TLS.
pub(super) async fn speaks_tls(endpoint: &str, limit: Duration) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(endpoint).await?;
        stream.write_all(&GREETING).await?;
        stream.read_u8().await
    };
    matches!(Clock::Boot.timeout(limit, ask).await, Some(Ok(ALERT)))
}

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
    let mut config = Arc::unwrap_or_clone(tls::client_config(tls)?);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
    let name = tls::server_name(tls, host)?;
    let stream = TcpStream::connect(endpoint).await?;
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.read_u8().await?;
    Ok(())
}
