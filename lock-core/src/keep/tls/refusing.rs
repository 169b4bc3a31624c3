//! A build without TLS: nothing is ever encrypted, and no error comes from it.

use std::{convert::Infallible, io};

use tokio::net::TcpStream;

use crate::{Result, Tls, keep::errors::no_tls};

/// There is no encrypted connection.
pub type Stream = TcpStream;

/// There is none.
pub struct Handshake(Infallible);

impl Handshake {
    /// Fails.
    pub fn new(_: &Tls, _: &str) -> Result<Self> {
        Err(no_tls())
    }

    /// Is not reached.
    pub fn protocol(self, _: &[u8]) -> Self {
        match self.0 {}
    }

    /// Is not reached.
    pub async fn with(self, _: TcpStream) -> io::Result<Stream> {
        match self.0 {}
    }
}

/// Nothing is.
pub fn cause(_: &io::Error, _: &str) -> Option<String> {
    None
}

/// Nothing is.
pub fn is_about_certificates(_: &io::Error) -> bool {
    false
}
