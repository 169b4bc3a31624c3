//! How to reach a server, and how to use it.

mod target;

use std::{fmt, time::Duration};

use lock_core::{
    Layout, Result, StoreUrl,
    keep::{
        limits::{DEFAULT_TTL, LONGEST_TTL},
        one_host::one_host,
    },
};
use redis::{AsyncConnectionConfig, Client};

pub use self::target::{Address, Target};
use crate::wire::own_client::Transport;

/// The permitted TTLs. The pauses of a busy server would end locks with a shorter one.
pub(crate) const TTL: std::ops::RangeInclusive<Duration> = Duration::from_millis(200)..=LONGEST_TTL;

/// Address of the server, login, and use of its keys.
///
/// With the feature `serde` it can be read from a configuration file: fields by their names, `ttl`
/// as in a URL. `Debug` does not show the password.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct RedisConfig {
    /// The servers. Not used with the Unix socket of a given client. Default: one server,
    /// `127.0.0.1:6379`.
    pub target: Target,
    /// The user of the server's access control list. Default: the server's default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database's number. Default: 0.
    pub database: i64,
    /// The TTL of locks without one of their own, 200 ms to 24 h. Default: 15 s.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub ttl: Option<Duration>,
    /// Prefix of every key. Default: empty.
    pub prefix: String,
    /// How names become keys. Default: [`Layout::Escaped`].
    pub layout: Layout,
    /// How to wait. Default: [`Mode::Queue`].
    pub mode: Mode,
    /// How many replicas must have a lock, and each renewal, before it counts. With fewer, the lock
    /// is given back, and acquiring it fails. Default: 0.
    pub wait_replicas: u32,
    /// The further settings of a given client.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) transport: Transport,
}

/// How attempts wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Mode {
    /// In a queue, woken by a push.
    #[default]
    Queue,
    /// By polling, without order. For servers without pub/sub or RESP3, and for comparison.
    Simple,
}

impl RedisConfig {
    /// Uses the server at an address; everything else has its default.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self::of(Target::Server(Address::new(host, port)))
    }

    /// Uses these servers; everything else has its default.
    pub fn of(target: Target) -> Self {
        Self {
            target,
            user: None,
            password: None,
            database: 0,
            ttl: None,
            prefix: String::new(),
            layout: Layout::default(),
            mode: Mode::default(),
            wait_replicas: 0,
            transport: Transport::default(),
        }
    }

    /// Uses the server of a client, with its login, its database and its transport: TCP, TLS, or a
    /// Unix socket. Everything else has its default. Sends nothing.
    ///
    /// The locks open a connection of their own; [the front page](crate#your-own-client) says why,
    /// and which settings of the client are used. A changed [`target`](Self::target), `user`, `password`
    /// or `database` replaces the client's.
    ///
    /// ```
    /// # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
    /// use std::time::Duration;
    /// use distlock::redis::{Address, RedisConfig, Target, client::Client};
    ///
    /// # fn example() -> Result<(), lock_redis::client::RedisError> {
    /// let client = Client::open("redis://me:secret@10.0.0.7:7000/2")?;
    /// let config = RedisConfig::from_client(&client).ttl(Duration::from_secs(5)).prefix("app:");
    /// assert_eq!(config.target, Target::Server(Address::new("10.0.0.7", 7000)));
    /// assert_eq!(config.database, 2);
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn from_client(client: &Client) -> Self {
        let info = client.get_connection_info();
        let (host, port) = Transport::host_of(info);
        let login = info.redis_settings();
        Self {
            user: login.username().map(str::to_owned),
            password: login.password().map(str::to_owned),
            database: login.db(),
            transport: Transport::of(info),
            ..Self::new(host, port)
        }
    }

    /// Sets the options of the connection that the locks open: the name resolver, and with the
    /// client library's feature `token-based-authentication` the provider of changing passwords.
    /// Its timeouts, its receiver of pushes and the size of its buffer are ignored: locks need
    /// their own.
    pub fn connection(mut self, options: AsyncConnectionConfig) -> Self {
        self.transport.options = options;
        self
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    /// Sets [`database`](Self#structfield.database).
    pub fn database(mut self, database: i64) -> Self {
        self.database = database;
        self
    }

    /// Sets [`mode`](Self#structfield.mode).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets [`ttl`](Self#structfield.ttl), 200 ms to 24 h.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets [`prefix`](Self#structfield.prefix).
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets [`layout`](Self#structfield.layout).
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Reads a URL; [the front page](crate#options) lists its options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if it names several hosts or its path is
    /// no database, [`Error::InvalidOption`](lock_core::Error::InvalidOption) for an unknown or
    /// wrong option.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if !["redis", "valkey"].contains(&url.scheme()) {
            return Err(url.error("expected redis://.. or valkey://.. (TLS is not supported yet)"));
        }
        let several = "expected one host (clusters are not supported yet)";
        let (host, port) = one_host(url, Address::PORT, several)?;
        let database = match url.path() {
            "" => 0,
            path => path
                .parse::<u16>()
                .map_err(|_| url.error("the path must be a database's number"))?
                .into(),
        };
        let default = Self::new(host, port);
        let mut options = url.options();
        let config = Self {
            user: url.user().map(str::to_owned),
            password: url.password().map(str::to_owned),
            database,
            ttl: options.duration("ttl")?,
            prefix: options.text("prefix").unwrap_or_default().to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            mode: options
                .choice("mode", &[("queue", Mode::Queue), ("simple", Mode::Simple)])?
                .unwrap_or_default(),
            ..default
        };
        options.finish()?;
        Ok(config)
    }

    pub(crate) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL)
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self::new("127.0.0.1", Address::PORT)
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("target", &self.target)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("database", &self.database)
            .field("ttl", &self.ttl)
            .field("prefix", &self.prefix)
            .field("layout", &self.layout)
            .field("mode", &self.mode)
            .field("wait_replicas", &self.wait_replicas)
            .field("way", &self.transport)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<RedisConfig> {
        RedisConfig::from_url(&StoreUrl::parse(url)?)
    }

    #[test]
    fn everything_can_be_said_in_a_url() {
        let c = config("redis://me:s@[::1]:7000/3?ttl=2s&prefix=app:&layout=native&mode=simple");
        let c = c.unwrap();
        assert_eq!(c.target, Target::Server(Address::new("::1", 7000)));
        assert_eq!(c.database, 3);
        assert_eq!((c.user.as_deref(), c.password.as_deref()), (Some("me"), Some("s")));
        assert_eq!((c.ttl, c.prefix.as_str()), (Some(Duration::from_secs(2)), "app:"));
        assert_eq!((c.layout, c.mode), (Layout::Native, Mode::Simple));
    }

    #[test]
    fn bad_urls_are_refused_and_say_why() {
        for (url, word) in [
            ("rediss://h", "TLS"),
            ("redis://a,b", "one host"),
            ("redis://h/x", "database"),
            ("redis://h?ttll=1s", "ttll"),
            ("redis://h?ttl=1", "ttl"),
            ("redis://h?mode=fast", "queue, simple"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let c = config("redis://me:secret@h").unwrap();
        assert!(!format!("{c:?}").contains("secret"));
    }
}
