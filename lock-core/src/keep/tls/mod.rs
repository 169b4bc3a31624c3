//! TLS for drivers that open their own sockets. In a build without the feature `tls`, [`check`]
//! refuses what asks for it before a socket is opened, and no [`Handshake`] can be made.

#[cfg(feature = "tls")]
mod cause;
#[cfg(feature = "tls")]
mod encrypting;
#[cfg(not(feature = "tls"))]
mod refusing;

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[cfg(not(feature = "tls"))]
pub use self::refusing::{Handshake, Stream, cause, is_about_certificates};
#[cfg(feature = "tls")]
pub use self::{
    cause::{cause, is_about_certificates},
    encrypting::{Handshake, Stream},
};
use crate::{
    Clock, Encryption, Options, Result, StoreUrl, Tls,
    keep::errors::{NO_TLS, invalid, no_tls},
};

/// The shortest beginning of TLS: a greeting of no length. A server that speaks TLS answers with an
/// alert, and any other one with no byte or with text.
const GREETING: [u8; 9] = [0x16, 3, 1, 0, 4, 1, 0, 0, 0];
const ALERT: u8 = 0x15;

/// Reads the options of a URL. Refuses a scheme that asks for TLS in a build without it.
pub fn of_url(url: &StoreUrl, options: &mut Options<'_>, encrypted: &[&str]) -> Result<Tls> {
    let tls = Tls::from_url(url, options, encrypted)?;
    match encrypted.contains(&url.scheme()) && !cfg!(feature = "tls") {
        true => Err(url.error(format!("{}:// means tls=verify, and {NO_TLS}", url.scheme()))),
        false => Ok(tls),
    }
}

/// Refuses what a driver of its own sockets cannot do, and files that are no certificates.
pub fn check(tls: &Tls) -> Result<()> {
    tls.check()?;
    match tls.mode {
        Encryption::Off => Ok(()),
        Encryption::Prefer => Err(invalid("tls", "prefer", "off or verify")),
        Encryption::Verify if cfg!(feature = "tls") => Handshake::new(tls, "localhost").map(drop),
        Encryption::Verify => Err(no_tls()),
    }
}

/// Says that a password goes through a network as it is, if one of these hosts is another machine.
pub fn plain_password(tls: &Tls, hosts: &[String]) -> Option<String> {
    let is_here = |host: &String| {
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        name.starts_with("127.") || matches!(name, "localhost" | "[::1]")
    };
    let is_open = tls.mode == Encryption::Off && !hosts.iter().all(is_here);
    is_open.then(|| {
        "the password is sent in plain text; use tls=verify where others see the network".to_owned()
    })
}

/// Whether the server at `address`, `host:port`, speaks TLS. It is sent nothing else.
pub async fn speaks_tls(address: &str, limit: Duration) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&GREETING).await?;
        stream.read_u8().await
    };
    matches!(Clock::Boot.timeout(limit, ask).await, Some(Ok(ALERT)))
}
