//! Tells a server that expects TLS from one that fails for other reasons.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The shortest beginning of TLS: a greeting of no length. A server that speaks TLS answers with an
/// alert, and any other one with no byte or with text.
const GREETING: [u8; 9] = [0x16, 3, 1, 0, 4, 1, 0, 0, 0];
const ALERT: u8 = 0x15;

/// Whether the server at `endpoint`, `host:port`, speaks TLS. Asks on a connection of its own.
pub(super) async fn speaks_tls(endpoint: &str, limit: Duration) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(endpoint).await?;
        stream.write_all(&GREETING).await?;
        stream.read_u8().await
    };
    matches!(timeout(limit, ask).await, Ok(Ok(ALERT)))
}
