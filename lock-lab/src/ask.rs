//! Requests to a server, with a limit.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::LabError;

/// Longest wait for a reply. A stopped server must not hang a test for ever, and a machine that stands
/// still for some seconds must not fail it.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs one piece of I/O. The error names the action.
pub(crate) async fn bounded<T>(
    action: &str,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, LabError> {
    let result = timeout(LIMIT, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    result.map_err(LabError::io(action))
}

/// Sends a request on a connection of its own and returns all until the server closes it.
pub(crate) async fn exchange(addr: SocketAddr, request: &[u8]) -> Result<Vec<u8>, LabError> {
    let work = async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(request).await?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await?;
        Ok(reply)
    };
    bounded(&format!("asking {addr}"), work).await
}
