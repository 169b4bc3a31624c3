//! How to reach the nodes, and how to use them.

use std::{collections::HashSet, fmt, ops::RangeInclusive, time::Duration};

use lock_core::{
    Error, Layout, Result, StoreUrl,
    keep::limits::{DEFAULT_TTL, LONGEST_TTL},
};

use crate::{RedisConfig, config::TTL};

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(60);
const MAX_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=LONGEST_TTL;
const NODES: RangeInclusive<usize> = 3..=15;
/// Time limit of making a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Addresses of the servers, login, and use of their keys. The login is the same on all servers.
///
/// With the feature `serde` it can be read from a configuration file: fields by their names,
/// durations as in a URL. `Debug` does not show the password.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct RedlockConfig {
    /// The servers, each `HOST` or `HOST:PORT`: 3 to 15 of them, best 5. No default.
    pub nodes: Vec<String>,
    /// The user of the servers' access control lists. Default: the servers' default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database's number. Default: 0.
    pub database: i64,
    /// The TTL of locks without one of their own, 200 ms to [`max_ttl`](Self::max_ttl). Default: 15
    /// s, or `max_ttl` if that is shorter.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub ttl: Option<Duration>,
    /// The longest TTL, 1 s to 24 h. The votes of a server that has restarted do not count for this
    /// long. All clients of the deployment must have the same one. Default: 1 min.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub max_ttl: Option<Duration>,
    /// Prefix of every key. Default: empty.
    pub prefix: String,
    /// How names become keys. Default: [`Layout::Escaped`].
    pub layout: Layout,
    /// How long a server may take to answer before its vote is given up, 10 ms to 1 min. Default: a
    /// tenth of the lock's TTL, 100 ms to 1 s.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub request_timeout: Option<Duration>,
    /// Time limit of making a connection, 100 ms to 1 min. Default: 3 s.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub connect_timeout: Option<Duration>,
}

impl RedlockConfig {
    /// Uses these servers, each `HOST` or `HOST:PORT`; everything else has its default.
    pub fn new<N: Into<String>>(nodes: impl IntoIterator<Item = N>) -> Self {
        let nodes = nodes.into_iter().map(Into::into).collect();
        Self { nodes, ..Self::default() }
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    /// Sets [`ttl`](Self#structfield.ttl), 200 ms to [`max_ttl`](Self#structfield.max_ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets [`max_ttl`](Self#structfield.max_ttl), 1 s to 24 h.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = Some(max_ttl);
        self
    }

    /// Sets [`prefix`](Self#structfield.prefix).
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Reads a URL: `redlock://[user][:password@]n1,n2,n3[/database][?option=value&..]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if it names too few hosts or one of them twice, or its path is no
    /// database; [`Error::InvalidOption`] for an unknown or wrong option.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if url.scheme() != "redlock" {
            return Err(url.error("expected redlock://HOST[:PORT],HOST[:PORT],.."));
        }
        let database = match url.path() {
            "" => 0,
            path => path
                .parse::<u16>()
                .map_err(|_| url.error("the path must be a database's number"))?
                .into(),
        };
        let mut options = url.options();
        let config = Self {
            nodes: url.hosts(DEFAULT_PORT),
            user: url.user().map(str::to_owned),
            password: url.password().map(str::to_owned),
            database,
            ttl: options.duration("ttl")?,
            max_ttl: options.duration("max_ttl")?,
            prefix: options.text("prefix").unwrap_or_default().to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            request_timeout: options.duration("request_timeout")?,
            connect_timeout: options.duration("connect_timeout")?,
        };
        options.finish()?;
        config.addresses()?;
        Ok(config)
    }

    /// Returns the servers' addresses, each with its port.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] if they are too few or too many, one has no form of an address, or
    /// two are equal.
    pub(super) fn addresses(&self) -> Result<Vec<String>> {
        let refused = |value: String, allowed: &str| {
            Err(Error::InvalidOption {
                option: "nodes".to_owned(),
                value,
                allowed: allowed.to_owned(),
            })
        };
        if !NODES.contains(&self.nodes.len()) {
            let allowed = "redlock takes 3 to 15 independent servers, best 5";
            return refused(self.nodes.join(","), allowed);
        }
        let mut addresses = Vec::new();
        let mut met = HashSet::new();
        for node in &self.nodes {
            let Some((host, port)) = split(node) else {
                return refused(node.clone(), "each is HOST or HOST:PORT");
            };
            if !met.insert((host.to_ascii_lowercase(), port)) {
                return refused(node.clone(), "each server once; this one is listed twice");
            }
            addresses.push(match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            });
        }
        Ok(addresses)
    }

    /// Checks the times.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] with the range.
    pub(super) fn check(&self) -> Result<()> {
        let requests = Duration::from_millis(10)..=Duration::from_secs(60);
        let connects = Duration::from_millis(100)..=Duration::from_secs(60);
        for (option, value, range, words) in [
            ("max_ttl", self.max_ttl, MAX_TTL, "1s to 24h"),
            ("request_timeout", self.request_timeout, requests, "10ms to 1m"),
            ("connect_timeout", self.connect_timeout, connects, "100ms to 1m"),
        ] {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                return Err(Error::InvalidOption {
                    option: option.to_owned(),
                    value: format!("{value:?}"),
                    allowed: words.to_owned(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL.min(self.longest_ttl()))
    }

    pub(super) fn longest_ttl(&self) -> Duration {
        self.max_ttl.unwrap_or(DEFAULT_MAX_TTL)
    }

    pub(super) fn ttls(&self) -> RangeInclusive<Duration> {
        *TTL.start()..=self.longest_ttl()
    }

    pub(super) fn connect_limit(&self) -> Duration {
        self.connect_timeout.unwrap_or(CONNECT)
    }

    /// Returns how long a node may take to answer a request for a lock with this TTL.
    pub(super) fn request_limit(&self, ttl: Duration) -> Duration {
        let by_ttl = (ttl / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
        self.request_timeout.unwrap_or(by_ttl)
    }

    /// Returns what all nodes have in common, as the configuration of one server.
    pub(super) fn server(&self) -> RedisConfig {
        let mut server = RedisConfig::default()
            .database(self.database)
            .prefix(&*self.prefix)
            .layout(self.layout);
        (server.user, server.password) = (self.user.clone(), self.password.clone());
        server
    }
}

/// Splits `HOST[:PORT]`. The brackets of an IPv6 address do not belong to it.
pub(super) fn split(node: &str) -> Option<(String, u16)> {
    let (host, port) = match node.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok().filter(|port| *port > 0)?)
        }
        _ => (node, DEFAULT_PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

impl Default for RedlockConfig {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            user: None,
            password: None,
            database: 0,
            ttl: None,
            max_ttl: None,
            prefix: String::new(),
            layout: Layout::default(),
            request_timeout: None,
            connect_timeout: None,
        }
    }
}

impl fmt::Debug for RedlockConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockConfig")
            .field("nodes", &self.nodes)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("database", &self.database)
            .field("ttl", &self.ttl)
            .field("max_ttl", &self.max_ttl)
            .field("prefix", &self.prefix)
            .field("layout", &self.layout)
            .field("request_timeout", &self.request_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<RedlockConfig> {
        RedlockConfig::from_url(&StoreUrl::parse(url)?)
    }

    #[test]
    fn everything_can_be_said_in_a_url() {
        let c = config(
            "redlock://me:s@a,b:7000,[::1]/3?ttl=2s&max_ttl=30s&prefix=app:&layout=native\
             &request_timeout=50ms&connect_timeout=1s",
        )
        .unwrap();
        assert_eq!(c.addresses().unwrap(), ["a:6379", "b:7000", "[::1]:6379"]);
        assert_eq!((c.user.as_deref(), c.password.as_deref()), (Some("me"), Some("s")));
        assert_eq!((c.database, c.prefix.as_str(), c.layout), (3, "app:", Layout::Native));
        assert_eq!((c.default_ttl().as_secs(), c.longest_ttl().as_secs()), (2, 30));
        assert_eq!(
            (c.request_limit(c.default_ttl()).as_millis(), c.connect_limit().as_secs()),
            (50, 1)
        );
        assert!(!format!("{c:?}").contains("\"s\""));
    }

    #[test]
    fn bad_urls_are_refused_and_say_why() {
        for (url, word) in [
            ("redis://a,b,c", "redlock://"),
            ("redlock://a,b", "3 to 15"),
            ("redlock://a,b,A:6379", "twice"),
            ("redlock://a,b,c/x", "database"),
            ("redlock://a,b,c?ttll=1s", "ttll"),
            ("redlock://a,b,c?max_ttl=1", "max_ttl"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(word), "{url}: {error}");
        }
        let mut c = config("redlock://a,b,c").unwrap().max_ttl(Duration::from_millis(1));
        assert!(c.check().unwrap_err().to_string().contains("1s to 24h"));
        c = RedlockConfig::new(["a", "", "c"]);
        assert!(c.addresses().unwrap_err().to_string().contains("HOST:PORT"));
    }
}
