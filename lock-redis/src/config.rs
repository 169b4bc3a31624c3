//! How to reach a server, and how to use it.

mod sentinel;
mod target;
pub(crate) mod url;

use std::time::Duration;

use lock_core::{
    Encryption, Layout, Result, Secret, StoreUrl, Timeouts, Tls, User,
    keep::{
        errors::invalid,
        limits::{DEFAULT_TTL, LONGEST_TTL},
        tls,
    },
};
use redis::{AsyncConnectionConfig, Client};

pub use self::target::{Address, Target};
use crate::wire::transport::Transport;

const MOST_REPLICAS: u32 = 100;
/// The permitted TTLs. The pauses of a busy server would end locks with a shorter one.
pub(crate) const TTL: std::ops::RangeInclusive<Duration> = Duration::from_millis(200)..=LONGEST_TTL;

/// Address of the server, login, and use of its keys.
///
/// With the feature `serde` it can be read from a configuration file: fields by their names, `ttl`
/// as in a URL. `Debug` does not show the password.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct RedisConfig {
    /// The servers. Not used with the Unix socket of a given client. Default: one server,
    /// `127.0.0.1:6379`.
    pub target: Target,
    /// The user of the server's access control list; read anew at each login, as the password is.
    /// Default: the server's default user.
    pub user: Option<User>,
    /// The password, which is read anew at each login.
    pub password: Option<Secret>,
    /// How connections are encrypted, to servers and sentinels. Default: not. Refused beside the TLS
    /// or the Unix socket of a given client.
    pub tls: Tls,
    /// Time limits of connecting (default 3 s) and of a request. A request waits for its answer for
    /// a third of the TTL, from 100 ms to 2 s; this makes it shorter.
    pub timeouts: Timeouts,
    /// The user at the sentinels, read anew at each login. Default: none.
    pub sentinel_user: Option<User>,
    /// The password at the sentinels, read anew at each login. Default: none.
    pub sentinel_password: Option<Secret>,
    /// The database's number. Default: 0.
    pub database: i64,
    /// The TTL of locks without one of their own, 200 ms to 24 h. Default: 15 s.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
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
        Self { target, ..Self::default() }
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
            user: login.username().map(User::text),
            password: login.password().map(Secret::text),
            database: login.db(),
            transport: Transport::of(info),
            ..Self::new(host, port)
        }
    }

    /// Sets the options of the connection that the locks open: the name resolver, and with the
    /// client library's feature `token-based-authentication` the provider of changing passwords.
    /// Its timeouts, its receiver of pushes and the size of its buffer are ignored: locks need
    /// their own. Not for sentinels, which would be told the servers' passwords: they have
    /// [`sentinel_connection`](Self::sentinel_connection).
    pub fn connection(mut self, options: AsyncConnectionConfig) -> Self {
        self.transport.options = options;
        self
    }

    /// Same as [`connection`](Self::connection), for the connections to sentinels. Default: none of
    /// these options.
    pub fn sentinel_connection(mut self, options: AsyncConnectionConfig) -> Self {
        self.transport.sentinel_options = options;
        self
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    /// Sets [`sentinel_user`](Self#structfield.sentinel_user) and
    /// [`sentinel_password`](Self#structfield.sentinel_password).
    pub fn sentinel_login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.sentinel_user, self.sentinel_password) = (Some(user.into()), Some(password.into()));
        self
    }

    lock_core::setters! {
        /// Sets [`tls`](Self#structfield.tls).
        tls: Tls => tls;
        /// Sets [`timeouts`](Self#structfield.timeouts).
        timeouts: Timeouts => timeouts;
        /// Sets [`wait_replicas`](Self#structfield.wait_replicas), 0 to 100.
        wait_replicas: u32 => wait_replicas;
        /// Sets [`database`](Self#structfield.database).
        database: i64 => database;
        /// Sets [`mode`](Self#structfield.mode).
        mode: Mode => mode;
        /// Sets [`ttl`](Self#structfield.ttl), 200 ms to 24 h.
        ttl: Duration => Some(ttl);
        /// Sets [`prefix`](Self#structfield.prefix).
        prefix: impl Into<String> => prefix.into();
        /// Sets [`layout`](Self#structfield.layout).
        layout: Layout => layout;
    }

    /// Reads a URL; `docs/stores/redis.md` lists its options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if it names several hosts or its path is
    /// no database, [`Error::InvalidOption`](lock_core::Error::InvalidOption) for an unknown or
    /// wrong option.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let (target, database) = url::place(url)?;
        let mut options = url.options();
        let replicas = options.number("wait_replicas", 0..=MOST_REPLICAS.into())?;
        let config = Self {
            user: User::from_url(url, &mut options)?,
            password: Secret::from_url(url, &mut options)?,
            tls: tls::of_url(url, &mut options, &["rediss", "valkeys"])?,
            timeouts: Timeouts::from_options(&mut options)?,
            database,
            ttl: options.duration("ttl")?,
            prefix: options.text("prefix").unwrap_or_default().to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            mode: options
                .choice("mode", &[("queue", Mode::Queue), ("simple", Mode::Simple)])?
                .unwrap_or_default(),
            wait_replicas: replicas.and_then(|count| count.try_into().ok()).unwrap_or_default(),
            ..Self::of(target)
        };
        let (sentinel_user, sentinel_password) = match config.target {
            Target::Sentinel { .. } => sentinel::login(url, &mut options)?,
            _ => (None, None),
        };
        options.finish()?;
        Ok(Self { sentinel_user, sentinel_password, ..config })
    }

    /// Refuses a configuration that cannot work, before anything is sent.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_tls()?;
        self.timeouts.check()?;
        if self.wait_replicas > MOST_REPLICAS {
            let allowed = format!("a number of replicas, 0 to {MOST_REPLICAS}");
            return Err(invalid("wait_replicas", self.wait_replicas, allowed));
        }
        let wrong = |allowed: &str| Err(invalid("target", format!("{:?}", self.target), allowed));
        match &self.target {
            Target::Sentinel { sentinels, service: name }
                if sentinels.is_empty() || name.is_empty() =>
            {
                wrong("at least one sentinel, and the service's name")
            }
            Target::Cluster { nodes } if nodes.is_empty() => {
                wrong("at least one node of the cluster")
            }
            Target::Cluster { .. } if self.database != 0 => {
                let allowed = "0: a Redis Cluster has no other database";
                Err(invalid("database", self.database, allowed))
            }
            _ => Ok(()),
        }
    }

    fn check_tls(&self) -> Result<()> {
        if self.tls.mode != Encryption::Off && !self.transport.is_plain() {
            let allowed = "off: the given client has TLS or a Unix socket of its own";
            return Err(invalid("tls", "verify", allowed));
        }
        self.tls.check()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.target, Target::Cluster { .. })
    }

    pub(crate) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<RedisConfig> {
        RedisConfig::from_url(&StoreUrl::parse(url)?)
    }

    #[test]
    fn pairs_that_cannot_work_are_refused() {
        let unix = Client::open("unix:///run/redis.sock").unwrap();
        let error = RedisConfig::from_client(&unix).tls(Tls::verify()).check().unwrap_err();
        assert!(error.to_string().contains("Unix socket"), "{error}");
        assert!(RedisConfig::from_client(&unix).check().is_ok());
    }

    #[test]
    fn the_password_is_not_shown() {
        let c = config("redis://me:secret@h").unwrap();
        assert!(!format!("{c:?}").contains("secret"));
    }
}
