//! The driver's configuration, and how a URL is read.

use std::{fmt, time::Duration};

use lock_core::{
    Encryption, Layout, LockName, Result, Secret, StoreUrl, Timeouts, Tls, User,
    duration::shown,
    keep::{errors::invalid, tls::plain_password},
};
use zookeeper_client::{Acls, Connector};

use crate::{
    layout::path,
    wire::given_client::{self, DEFAULT_PORT},
};

const DEFAULT_PREFIX: &str = "/locks";
/// Longer than the tick of any server in use. Deadlines are computed from multiples of it.
const LONGEST_TICK: Duration = Duration::from_secs(60);

/// Which logins may touch the nodes that this client creates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Access {
    /// Any login, and clients without a login.
    #[default]
    Open,
    /// Only this client's own login.
    Creator,
}

impl Access {
    pub(crate) fn acls(self) -> Acls<'static> {
        match self {
            Self::Open => Acls::anyone_all(),
            Self::Creator => Acls::creator_all(),
        }
    }
}

/// How to reach ZooKeeper, and the directory of the locks. `docs/stores/zookeeper.md` lists the
/// options of a URL.
///
/// With the feature `serde` it is read from a configuration file: the fields by their names, `ttl`
/// and `tick` as in a URL. `Debug` does not show the password.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct ZkConfig {
    /// The servers, `host` or `host:port`, with `tcp+tls://` before a host that is reached by TLS.
    /// Default: `127.0.0.1:2181`.
    pub hosts: Vec<String>,
    /// The path that contains all other paths, such as `/app`. Default: none.
    pub chroot: String,
    /// The user. It is read anew when the server refuses a request, as the password is. Default: no
    /// login.
    pub user: Option<User>,
    /// The password. It is read anew when the server refuses a request.
    pub password: Option<Secret>,
    /// Encryption. Default: none.
    pub tls: Tls,
    /// The most time for a connection (default: 3 s), and how long a server may be silent before
    /// it is left for another one (default: a sixth of the TTL or less, but 500 ms or more; with
    /// one host two fifths of the TTL).
    pub timeouts: Timeouts,
    /// The TTL of locks that set none. Default: 15 s, or what the server grants for it.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub ttl: Option<Duration>,
    /// The directory of the locks, below the chroot: a path. Default: `/locks`.
    pub prefix: String,
    /// How names become directories. Default: [`Layout::Escaped`].
    pub layout: Layout,
    /// Which logins may touch our nodes. Default: [`Access::Open`].
    pub access: Access,
    /// The servers' `tickTime`, up to 1 min, if they do not tell a longer one. A tick that is too
    /// long costs time, one that is too short costs safety. Default: as told, or guessed from the
    /// timeouts.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub tick: Option<Duration>,
    /// A connector of the caller's, with its own logins.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) given: Option<Given>,
}

/// A connector of the caller's. It may show a password.
#[derive(Clone)]
pub(crate) struct Given(pub(crate) Connector);

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl ZkConfig {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) or
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) that names the mistake.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let mut options = url.options();
        let accesses = [("open", Access::Open), ("creator", Access::Creator)];
        let config = Self {
            hosts: url.hosts(DEFAULT_PORT),
            chroot: match url.path() {
                "" => String::new(),
                path => format!("/{path}"),
            },
            user: User::from_url(url, &mut options)?,
            password: Secret::from_url(url, &mut options)?,
            tls: Tls::from_options(&mut options, Encryption::Off)?,
            timeouts: Timeouts::from_options(&mut options)?,
            ttl: options.duration("ttl")?,
            prefix: options.text("prefix").unwrap_or(DEFAULT_PREFIX).to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            access: options.choice("acl", &accesses)?.unwrap_or_default(),
            tick: options.duration("tick")?,
            given: None,
        };
        options.finish()?;
        config.checked()
    }

    /// A configuration for these servers, `host` or `host:port`; everything else by default.
    pub fn new(hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { hosts: hosts.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// A configuration whose sessions a connector makes, with its login, SASL and TLS; everything
    /// else by default. Nothing is sent. [The front page](crate#your-own-client) says why it takes
    /// no client, and which settings of the connector count.
    ///
    /// `cluster` is the client crate's connect string: `host[:2181][,host..][/chroot]`, with
    /// `tcp+tls://` before a host that is reached by TLS. If all hosts are,
    /// [`tick`](Self#structfield.tick) must be given.
    ///
    /// ```
    /// # mod distlock { pub use lock_core::*; pub use lock_zk as zookeeper; }
    /// use std::time::Duration;
    /// use distlock::zookeeper::{Access, ZkConfig, client::Client};
    ///
    /// let connector = Client::connector().with_auth("digest", b"me:secret");
    /// let config = ZkConfig::from_connector(connector, "10.0.0.1:2181,10.0.0.2:2181/app")?
    ///     .access(Access::Creator)
    ///     .ttl(Duration::from_secs(10));
    /// # Ok::<(), lock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if `cluster` is no connect string,
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the connector continues a
    /// session, is detached, or fails eagerly.
    pub fn from_connector(connector: Connector, cluster: &str) -> Result<Self> {
        let (hosts, chroot) = given_client::parse(cluster)?;
        given_client::check(&connector)?;
        Ok(Self { hosts, chroot, given: Some(Given(connector)), ..Self::default() })
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    lock_core::setters! {
        /// Sets [`chroot`](Self#structfield.chroot).
        chroot: impl Into<String> => chroot.into();
        /// Sets [`ttl`](Self#structfield.ttl).
        ttl: Duration => Some(ttl);
        /// Sets [`prefix`](Self#structfield.prefix).
        prefix: impl Into<String> => prefix.into();
        /// Sets [`layout`](Self#structfield.layout).
        layout: Layout => layout;
        /// Sets [`access`](Self#structfield.access). [`Access::Creator`] needs a login.
        access: Access => access;
        /// Sets [`tick`](Self#structfield.tick).
        tick: Duration => Some(tick);
        /// Sets [`tls`](Self#structfield.tls).
        tls: Tls => tls;
        /// Sets [`timeouts`](Self#structfield.timeouts).
        timeouts: Timeouts => timeouts;
    }

    /// Returns the directory of a lock: see [`path::directory`].
    pub(crate) fn directory(&self, name: &LockName) -> Result<String> {
        path::directory(&self.prefix, self.layout, name)
    }

    /// The hosts that answer without TLS.
    pub(crate) fn plain_hosts(&self) -> Vec<String> {
        self.hosts.iter().filter(|host| !host.starts_with(given_client::TLS)).cloned().collect()
    }

    /// Says that the password goes through a network as it is, if it does.
    pub(crate) fn open_login(&self) -> Option<String> {
        plain_password(&self.tls, &self.plain_hosts()).filter(|_| self.user.is_some())
    }

    /// Checks the fields, which need not come from a URL, and gives each host its port.
    pub(crate) fn checked(mut self) -> Result<Self> {
        for (option, path) in [("prefix", &self.prefix), ("chroot", &self.chroot)] {
            if option != "chroot" || !path.is_empty() {
                let path_is = |reason| invalid(option, path, format!("a path: {reason}"));
                path::check_path(path).map_err(path_is)?;
            }
        }
        if self.user.is_some() != self.password.is_some() {
            let allowed = "user:password@, or user@, user_file or user_env for the user and \
                           password_file or password_env for the password";
            return Err(invalid("login", "half of it", allowed));
        }
        if self.access == Access::Creator && self.user.is_none() && self.given.is_none() {
            let allowed = "open, or a login such as user:password@ in front of the host";
            return Err(invalid("acl", "creator", allowed));
        }
        if let Some(tick) = self.tick.filter(|tick| tick.is_zero() || *tick > LONGEST_TICK) {
            return Err(invalid("tick", shown(tick), "more than 0, up to 1m"));
        }
        self.tls.check()?;
        self.timeouts.check()?;
        for host in &mut self.hosts {
            *host =
                given_client::host_of(host).map_err(|reason| invalid("hosts", &*host, reason))?;
        }
        if self.tls.mode != Encryption::Off && self.plain_hosts().len() < self.hosts.len() {
            return Err(invalid("hosts", "tcp+tls://", "hosts without it, with tls=verify"));
        }
        match self.hosts.is_empty() {
            true => Err(invalid("hosts", "none", "at least one")),
            false => Ok(self),
        }
    }
}

impl Default for ZkConfig {
    fn default() -> Self {
        Self {
            hosts: vec![format!("127.0.0.1:{DEFAULT_PORT}")],
            chroot: String::new(),
            user: None,
            password: None,
            ttl: None,
            prefix: DEFAULT_PREFIX.to_owned(),
            layout: Layout::default(),
            access: Access::default(),
            tick: None,
            tls: Tls::default(),
            timeouts: Timeouts::default(),
            given: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<ZkConfig> {
        ZkConfig::from_url(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn everything_has_a_default() {
        let config = config("zookeeper://").unwrap();
        assert_eq!(config.hosts, ["127.0.0.1:2181"]);
        assert_eq!((config.prefix.as_str(), config.layout), ("/locks", Layout::Escaped));
        assert_eq!((config.ttl, config.access), (None, Access::Open));
    }

    #[test]
    fn everything_can_be_set() {
        let url = "zookeeper://me:se%40cret@a,b:2182/app/x?prefix=/l&layout=native&ttl=5s&tick=1s&acl=creator";
        let config = config(url).unwrap();
        assert_eq!(
            (config.hosts.clone(), config.chroot.as_str()),
            (vec!["a:2181".into(), "b:2182".into()], "/app/x")
        );
        assert_eq!((config.prefix.as_str(), config.layout), ("/l", Layout::Native));
        assert_eq!((config.ttl, config.access), (Some(Duration::from_secs(5)), Access::Creator));
        assert_eq!(config.tick, Some(Duration::from_secs(1)));
        assert!(!format!("{config:?}").contains("se@cret"));
    }

    #[test]
    fn a_login_may_be_elsewhere() {
        let config = config("zookeeper://h?user_env=U&password_file=/p&acl=creator").unwrap();
        assert_eq!(config.user, Some(User::env("U")));
        config.checked().unwrap();
    }

    #[test]
    fn a_tick_that_no_url_can_have_is_refused() {
        for tick in [Duration::ZERO, Duration::MAX, LONGEST_TICK + Duration::from_nanos(1)] {
            let error = ZkConfig::default().tick(tick).checked().unwrap_err().to_string();
            assert!(error.contains("up to 1m"), "{error}");
        }
        ZkConfig::default().tick(LONGEST_TICK).checked().unwrap();
    }

    #[test]
    fn a_bad_url_is_refused_with_the_reason() {
        for (url, expected) in [
            ("zookeeper://h?ttl=soon", "ttl"),
            ("zookeeper://h?prefix=locks", "prefix"),
            ("zookeeper://h?prefix=/a//b", "prefix"),
            ("zookeeper://h/a/", "chroot"),
            ("zookeeper://h?layout=own", "layout"),
            ("zookeeper://h?acl=all", "acl"),
            ("zookeeper://h?tick=61s", "up to 1m"),
            ("zookeeper://h?tick=5124095576030431h", "up to 1m"),
            ("zookeeper://h?acl=creator", "user:password"),
            ("zookeeper://me@h", "user:password"),
            ("zookeeper://h?user_file=/u", "user:password"),
            ("zookeeper://me:p@h?user_file=/u", "one user"),
            ("zookeeper://h?holder=me", "holder"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
