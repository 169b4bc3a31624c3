//! Store URLs: `scheme://[user[:password]@]host[:port][,host[:port]]..[/path][?option=value&..]`.

mod options;
mod parts;
pub(crate) mod secret;
mod secrets;
mod source;
pub(crate) mod timeouts;
pub(crate) mod tls;
pub(crate) mod user;

use std::{collections::BTreeMap, fmt};

pub use self::options::Options;
use self::{
    options::options,
    parts::{decode, is_host, is_scheme, port_of},
    secrets::{has_stray_at, without_password},
};
use crate::{Error, Result};

/// A parsed store URL. `Debug` and `Display` never show the password.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::StoreUrl;
///
/// let url = StoreUrl::parse("redis://me:se%40cret@10.0.0.1,10.0.0.2:7000/3?ttl=10s")?;
/// assert_eq!(url.hosts(6379), ["10.0.0.1:6379", "10.0.0.2:7000"]);
/// assert_eq!(url.password(), Some("se@cret"));
/// assert_eq!(url.to_string(), "redis://me:***@10.0.0.1,10.0.0.2:7000/3?ttl=10s");
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StoreUrl {
    shown: String,
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    authority: bool,
    hosts: Vec<String>,
    path: String,
    options: BTreeMap<String, String>,
}

impl StoreUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if there is no scheme, an escape is broken, a host is empty or a path,
    /// a port is not a number, an option has no `=` or is given twice, and for a line end or another
    /// control character.
    pub fn parse(url: &str) -> Result<Self> {
        let shown = without_password(url);
        let bad = |reason: String| Error::InvalidUrl { url: shown.clone(), reason };
        // It would be part of a name: the URL of a file with Windows' line ends makes a second store.
        if url.contains(char::is_control) || url.ends_with(char::is_whitespace) {
            let why = "a line end, a blank at the end or another control character; in a name it \
                       is written as %0D, %20 and the like";
            return Err(bad(why.to_owned()));
        }
        let (scheme, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
            .ok_or_else(|| bad("expected SCHEME:.. or SCHEME://HOST..".to_owned()))?;
        if has_stray_at(rest) {
            return Err(bad(
                "an @ that does not end the login must be escaped as %40, and so must /, ? and # \
                 in a password, as %2F, %3F and %23"
                    .to_owned(),
            ));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("", rest),
        };
        let (login, hosts) = match authority.split_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login.map(|l| l.split_once(':').unwrap_or((l, ""))) {
            Some((user, password)) => (decode(user).map_err(bad)?, decode(password).map_err(bad)?),
            None => (String::new(), String::new()),
        };
        let hosts: Vec<String> = match (login, hosts) {
            (None, "") => Vec::new(),
            (_, hosts) => hosts.split(',').map(str::to_owned).collect(),
        };
        if let Some(host) = hosts.iter().find(|host| !is_host(host)) {
            return Err(bad(match host.as_str() {
                "" => "a host is empty".to_owned(),
                path if path.contains('%') => format!(
                    "{path:?} is no host; a socket of this machine cannot be named: write \
                     127.0.0.1, or HOST:PORT"
                ),
                host => format!("{host:?} is not HOST or HOST:PORT with a port of 1 to 65535"),
            }));
        }
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: Some(user).filter(|u| !u.is_empty()),
            password: Some(password).filter(|p| !p.is_empty()),
            authority: rest.starts_with("//"),
            hosts,
            path: decode(path).map_err(bad)?,
            options: options(query).map_err(bad)?,
            shown,
        })
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The user name, decoded.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password, decoded.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The hosts with their ports; `127.0.0.1` if the URL names none.
    pub fn hosts(&self, default_port: u16) -> Vec<String> {
        let with_port = |host: &String| match port_of(host) {
            Some(_) => host.clone(),
            None => format!("{host}:{default_port}"),
        };
        match self.hosts.as_slice() {
            [] => vec![format!("127.0.0.1:{default_port}")],
            hosts => hosts.iter().map(with_port).collect(),
        }
    }

    /// Whether the URL has a `//`, with a host or without.
    pub fn has_authority(&self) -> bool {
        self.authority
    }

    /// Whether the URL names a host.
    pub fn has_host(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The part after the first `/` behind the hosts, decoded; empty if there is none.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the options; each must be asked for before [`Options::finish`].
    pub fn options(&self) -> Options<'_> {
        Options { given: &self.options, known: Vec::new() }
    }

    /// An error about this URL.
    pub fn error(&self, reason: impl Into<String>) -> Error {
        Error::InvalidUrl { url: self.shown.clone(), reason: reason.into() }
    }
}

/// A program's configuration can contain it. It cannot be written: the password would be in it, or
/// missing.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for StoreUrl {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let url = <std::borrow::Cow<'_, str>>::deserialize(from)?;
        Self::parse(&url).map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = Error;

    /// # Errors
    ///
    /// Same as [`StoreUrl::parse`].
    fn from_str(url: &str) -> Result<Self> {
        Self::parse(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

#[cfg(test)]
mod tests;
