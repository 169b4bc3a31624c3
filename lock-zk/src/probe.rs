//! Asks a server which session timeouts it grants.
//!
//! ZooKeeper does not say; it clamps what a client asks for. So two short-lived sessions ask for
//! the least and the most. The client crate cannot do that (a timeout of 1 ms is also its time to
//! connect), and the handshake is 45 bytes. It is also the first contact, and tells why there is
//! none.

use std::{io, ops::RangeInclusive, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const CLOSE_SESSION: i32 = -11;
/// Longer than any answer to a handshake.
const MOST_BYTES: usize = 1024;

/// Returns the range of session timeouts of the first host that answers.
///
/// # Errors
///
/// Why the last host did not answer.
pub(crate) async fn session_timeouts(hosts: &[String]) -> io::Result<RangeInclusive<Duration>> {
    let mut answers: FuturesUnordered<_> = hosts.iter().map(|host| range_of(host)).collect();
    let mut failure = io::Error::other("no host to connect to");
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(range) => return Ok(range),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn range_of(host: &str) -> io::Result<RangeInclusive<Duration>> {
    let range = async { tokio::try_join!(grant(host, 1), grant(host, i32::MAX)) };
    match range.await {
        Ok((least, most)) => Ok(least..=most),
        Err(error) => Err(io::Error::new(error.kind(), format!("{host}: {error}"))),
    }
}

/// Opens a session with the wished timeout, ends it, and returns the timeout that was granted.
async fn grant(host: &str, wish: i32) -> io::Result<Duration> {
    let mut stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&frame(&handshake(wish))).await?;
    let answer = read_frame(&mut stream).await?;
    let granted = parse(&answer)
        .ok_or_else(|| io::Error::other("this does not answer like a ZooKeeper server"))?;
    stream.write_all(&frame(&[1_i32.to_be_bytes(), CLOSE_SESSION.to_be_bytes()].concat())).await?;
    // So that the session is gone when we are; some servers close the connection instead.
    let _ = read_frame(&mut stream).await;
    Ok(granted)
}

fn frame(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).unwrap_or(0).to_be_bytes();
    [&length, body].concat()
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = match stream.read_i32().await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(io::Error::new(
                error.kind(),
                "it closed the connection: it does not serve",
            ));
        }
        length => length?,
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= MOST_BYTES);
    let length =
        length.ok_or_else(|| io::Error::other("this does not answer like a ZooKeeper server"))?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Protocol version, last zxid seen, timeout, session id, password of 16 bytes, read-only.
fn handshake(timeout: i32) -> Vec<u8> {
    let mut body = vec![0; 12];
    body.extend(timeout.to_be_bytes());
    body.extend([0; 8]);
    body.extend(16_i32.to_be_bytes());
    body.extend([0; 17]);
    body
}

/// The answer is protocol version, timeout, session id, password.
fn parse(answer: &[u8]) -> Option<Duration> {
    let timeout = i32::from_be_bytes(answer.get(4..8)?.try_into().ok()?);
    let session = i64::from_be_bytes(answer.get(8..16)?.try_into().ok()?);
    let granted = u64::try_from(timeout).ok().filter(|granted| *granted > 0 && session != 0)?;
    Some(Duration::from_millis(granted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_is_what_zookeeper_reads() {
        let bytes = frame(&handshake(0x0102_0304));
        assert_eq!(bytes.len(), 4 + 45);
        assert_eq!(&bytes[..4], 45_i32.to_be_bytes());
        assert_eq!(&bytes[16..20], [1, 2, 3, 4]);
        assert_eq!(&bytes[28..32], 16_i32.to_be_bytes());
    }

    #[test]
    fn an_answer_without_a_session_is_none() {
        let mut answer = vec![0; 37];
        assert_eq!(parse(&answer), None);
        answer[4..8].copy_from_slice(&4000_i32.to_be_bytes());
        assert_eq!(parse(&answer), None);
        answer[15] = 1;
        assert_eq!(parse(&answer), Some(Duration::from_secs(4)));
        assert_eq!(parse(b"HTTP/1.1"), None);
    }
}
