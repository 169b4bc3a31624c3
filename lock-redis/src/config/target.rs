//! The servers that keep the locks.

use std::{fmt, str::FromStr};

/// Host name or address of a server, and its port. In a configuration file: the text `HOST:PORT`,
/// with brackets around an IPv6 address; `HOST` alone for port 6379.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String"))]
#[non_exhaustive]
pub struct Address {
    /// The host name, or the address without brackets; the path of a Unix socket.
    pub host: String,
    /// The port; 0 for a Unix socket.
    pub port: u16,
}

/// The deployment that keeps the locks.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Target {
    /// One server.
    Server(Address),
    /// The primary that sentinels name.
    Sentinel {
        /// Addresses of sentinels, which are all asked. In a configuration file, `HOST` alone stands
        /// for port 26379.
        #[cfg_attr(feature = "serde", serde(deserialize_with = "sentinels"))]
        sentinels: Vec<Address>,
        /// The service's name in the sentinels' configuration (`sentinel monitor NAME ..`).
        service: String,
    },
    /// A Redis Cluster.
    Cluster {
        /// Addresses of some nodes; they name the others.
        nodes: Vec<Address>,
    },
}

impl Address {
    /// The port of a server whose address names none.
    pub const PORT: u16 = 6379;
    /// The port of a sentinel whose address names none.
    pub const SENTINEL_PORT: u16 = 26379;

    /// An address.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Reads `HOST:PORT` or `HOST`, with brackets around an IPv6 address.
    ///
    /// # Errors
    ///
    /// Says that the text is neither.
    pub(crate) fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let read = || {
            let both = text.rsplit_once(':');
            let both = both.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
            let (host, port) = match both {
                Some((host, port)) => (host, port.parse::<u16>().ok().filter(|port| *port > 0)?),
                None => (text, default_port),
            };
            let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let host = inside.unwrap_or(host);
            (!host.is_empty()).then(|| Self::new(host, port))
        };
        read().ok_or_else(|| format!("{text:?} is not HOST or HOST:PORT"))
    }
}

#[cfg(feature = "serde")]
fn sentinels<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    let texts: Vec<String> = serde::Deserialize::deserialize(from)?;
    let address = |text: &String| Address::parse(text, Address::SENTINEL_PORT);
    texts.iter().map(address).collect::<Result<Vec<_>, _>>().map_err(serde::de::Error::custom)
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, Self::PORT)
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.as_str(), self.port) {
            (path, 0) => f.write_str(path),
            (host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            (host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl Default for Target {
    /// The server on this machine.
    fn default() -> Self {
        Self::Server(Address::new("127.0.0.1", Address::PORT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        for (text, host, port) in
            [("h", "h", 6379), ("h:7", "h", 7), ("[::1]", "::1", 6379), ("[::1]:8", "::1", 8)]
        {
            assert_eq!(text.parse(), Ok(Address::new(host, port)));
        }
        for odd in ["", ":7", "h:", "h:x", "h:0", "h:70000"] {
            assert!(odd.parse::<Address>().is_err(), "{odd}");
        }
        assert_eq!(Address::new("::1", 8).to_string(), "[::1]:8");
    }
}
