//! The part of the Redis protocol that the lab needs.

use std::{fmt, io, net::SocketAddr, pin::Pin};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::{LabError, ask::bounded};

#[derive(Debug, Eq, PartialEq)]
pub(super) enum Reply {
    Array(Vec<Reply>),
    Error(String),
    Nil,
    Text(Vec<u8>),
}

impl Reply {
    /// Returns the strings of an array, without other values.
    pub(super) fn into_strings(self) -> Vec<Vec<u8>> {
        match self {
            Self::Array(items) => items.into_iter().flat_map(Self::into_strings).collect(),
            Self::Text(text) => vec![text],
            Self::Error(_) | Self::Nil => Vec::new(),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(items) => {
                let lines: Vec<_> = items.iter().map(Self::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Error(text) => f.write_str(text),
            Self::Nil => f.write_str("(nil)"),
            Self::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
        }
    }
}

/// A connection that waits for each reply.
#[derive(Debug)]
pub(super) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(super) async fn open(addr: SocketAddr, password: Option<&str>) -> Result<Self, LabError> {
        let stream = bounded("connecting to redis", TcpStream::connect(addr)).await?;
        let mut connection = Self(BufReader::new(stream));
        if let Some(password) = password {
            connection.call(&[b"AUTH", password.as_bytes()]).await?;
        }
        Ok(connection)
    }

    /// Sends a command and returns the reply, or the error reply of Redis.
    pub(super) async fn call(&mut self, args: &[&[u8]]) -> Result<Reply, LabError> {
        let work = async {
            self.0.write_all(&encode(args)).await?;
            read(&mut self.0).await
        };
        match bounded("asking redis", work).await? {
            Reply::Error(reply) => Err(LabError::Reply { server: "redis", reply }),
            reply => Ok(reply),
        }
    }
}

fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        request.extend_from_slice(arg);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// Reads one reply. Boxed, because an array contains replies.
fn read<'a>(
    stream: &'a mut BufReader<TcpStream>,
) -> Pin<Box<dyn Future<Output = io::Result<Reply>> + Send + 'a>> {
    Box::pin(async move {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(cut_off)?;
        match kind {
            "+" | ":" => Ok(Reply::Text(rest.into())),
            "-" => Ok(Reply::Error(rest.into())),
            "$" | "*" if rest.starts_with('-') => Ok(Reply::Nil),
            "$" => read_text(stream, length(rest)?).await,
            "*" => {
                let mut items = Vec::new();
                for _ in 0..length(rest)? {
                    items.push(read(stream).await?);
                }
                Ok(Reply::Array(items))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, line)),
        }
    })
}

async fn read_text(stream: &mut BufReader<TcpStream>, length: usize) -> io::Result<Reply> {
    let mut text = vec![0; length + "\r\n".len()];
    stream.read_exact(&mut text).await?;
    text.truncate(length);
    Ok(Reply::Text(text))
}

fn length(text: &str) -> io::Result<usize> {
    text.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn cut_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
