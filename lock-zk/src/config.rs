//! What a URL says.

use std::{fmt, time::Duration};

use lock_core::{Error, Result, StoreUrl};
use zookeeper_client::{Acls, Client, Connector};

use crate::{
    cluster,
    layout::{self, Layout},
};

pub(crate) const DEFAULT_PORT: u16 = 2181;
const DEFAULT_PREFIX: &str = "/locks";

/// Who may touch the nodes that this client creates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Access {
    /// Everybody.
    #[default]
    Open,
    /// Whoever has the same login.
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

/// How to reach ZooKeeper, and where the locks are.
///
/// `zookeeper://[user:password@]host[:2181][,host..][/chroot][?option=value&..]`
///
/// | option | meaning | default |
/// |---|---|---|
/// | `prefix` | directory of the locks, below the chroot | `/locks` |
/// | `layout` | `escaped`: one directory per name, percent-encoded; `native`: the name is a path | `escaped` |
/// | `ttl` | TTL of a lock whose builder names none | 15 s, or what the server grants for it |
/// | `tick` | `tickTime` of the servers, for those that do not tell it: see the front page | as told, or guessed from the timeouts |
/// | `acl` | `open`: everybody may touch our nodes; `creator`: our login only | `open` |
///
/// The login is used for ZooKeeper's `digest` scheme.
#[derive(Clone)]
pub struct ZkConfig {
    /// Each perhaps with [`cluster::TLS`] in front.
    pub(crate) hosts: Vec<String>,
    pub(crate) chroot: String,
    connector: Connector,
    pub(crate) prefix: String,
    pub(crate) layout: Layout,
    pub(crate) access: Access,
    pub(crate) ttl: Option<Duration>,
    pub(crate) tick: Option<Duration>,
}

impl ZkConfig {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) or
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) that names what is wrong.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let mut options = url.options();
        let prefix = options.text("prefix").unwrap_or(DEFAULT_PREFIX).to_owned();
        let layouts = [("escaped", Layout::Escaped), ("native", Layout::Native)];
        let layout = options.choice("layout", &layouts)?.unwrap_or_default();
        let (ttl, tick) = (options.duration("ttl")?, options.duration("tick")?);
        let accesses = [("open", Access::Open), ("creator", Access::Creator)];
        let access = options.choice("acl", &accesses)?.unwrap_or_default();
        options.finish()?;
        layout::check_path(&prefix).map_err(|reason| url.error(format!("prefix: {reason}")))?;
        let chroot = match url.path() {
            "" => String::new(),
            path => format!("/{path}"),
        };
        if !chroot.is_empty() {
            layout::check_path(&chroot).map_err(|reason| url.error(format!("path: {reason}")))?;
        }
        let login = login(url)?;
        if access == Access::Creator && login.is_none() {
            return Err(url.error("acl=creator needs user:password@ in front of the host"));
        }
        let hosts = url.hosts(DEFAULT_PORT);
        let connector = match login {
            Some(login) => Client::connector().with_auth("digest", login.as_bytes()),
            None => Client::connector(),
        };
        Ok(Self { hosts, chroot, connector, prefix, layout, access, ttl, tick })
    }

    /// Sessions made by a connector, with its login, SASL and TLS; everything else by default. Nothing
    /// is sent. [The front page](crate#your-own-client) says why it is no client, and what of the
    /// connector counts.
    ///
    /// `cluster` is the client crate's connect string: `host[:2181][,host..][/chroot]`, with `tcp+tls://`
    /// in front of a host that is reached by TLS. If all are, [`tick`](Self::tick) must be given.
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
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if `cluster` is none,
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the connector continues a session, is
    /// detached, or fails eagerly.
    pub fn from_connector(connector: Connector, cluster: &str) -> Result<Self> {
        let (hosts, chroot) = cluster::parse(cluster)?;
        cluster::check(&connector)?;
        Ok(Self {
            hosts,
            chroot,
            connector,
            prefix: DEFAULT_PREFIX.to_owned(),
            layout: Layout::default(),
            access: Access::default(),
            ttl: None,
            tick: None,
        })
    }

    /// Sets the TTL of a lock whose builder names none. Default: 15 s, or what the server grants for it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the directory of the locks, below the chroot: a path. Default: `/locks`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how a name becomes a path. Default: [`Layout::Escaped`].
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets who may touch our nodes. [`Access::Creator`] needs a login. Default: [`Access::Open`].
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the servers' `tickTime`, which they are asked otherwise; too long a tick costs time, too
    /// short a tick costs safety.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// The hosts that answer without TLS.
    pub(crate) fn plain_hosts(&self) -> Vec<String> {
        self.hosts.iter().filter(|host| !host.starts_with(cluster::TLS)).cloned().collect()
    }

    /// What makes a session of this TTL. The rest of a connector's options would let a session end later
    /// than its deadlines, or be good for nothing.
    pub(crate) fn connector(&self, ttl: Duration) -> Connector {
        let connector = self.connector.clone().with_session_timeout(ttl).with_readonly(false);
        connector.with_connection_timeout(Duration::ZERO)
    }

    /// What could be wrong with the prefix.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`].
    pub(crate) fn check_prefix(&self) -> Result<()> {
        layout::check_path(&self.prefix).map_err(|reason| Error::InvalidOption {
            option: "prefix".to_owned(),
            value: self.prefix.clone(),
            allowed: format!("a path: {reason}"),
        })
    }

    /// What the client crate calls a connect string, with each host so often that there are at
    /// least so many.
    pub(crate) fn ensemble(&self, hosts: usize) -> String {
        let rounds = hosts.div_ceil(self.hosts.len());
        let all = vec![self.hosts.join(","); rounds].join(",");
        format!("{all}{}", self.chroot)
    }
}

fn login(url: &StoreUrl) -> Result<Option<String>> {
    match (url.user(), url.password()) {
        (None, None) => Ok(None),
        (Some(user), Some(password)) => Ok(Some(format!("{user}:{password}"))),
        _ => Err(url.error("a login is user:password@")),
    }
}

impl fmt::Debug for ZkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkConfig")
            .field("hosts", &self.hosts)
            .field("chroot", &self.chroot)
            .field("prefix", &self.prefix)
            .field("layout", &self.layout)
            .field("access", &self.access)
            .field("ttl", &self.ttl)
            .field("tick", &self.tick)
            .finish_non_exhaustive()
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
        assert_eq!(config.ensemble(1), "127.0.0.1:2181");
        assert_eq!((config.prefix.as_str(), config.layout), ("/locks", Layout::Escaped));
        assert_eq!((config.ttl, config.access), (None, Access::Open));
    }

    #[test]
    fn everything_can_be_set() {
        let url = "zookeeper://me:se%40cret@a,b:2182/app/x?prefix=/l&layout=native&ttl=5s&tick=1s&acl=creator";
        let config = config(url).unwrap();
        assert_eq!(config.ensemble(1), "a:2181,b:2182/app/x");
        assert_eq!(config.ensemble(3), "a:2181,b:2182,a:2181,b:2182/app/x");
        assert_eq!((config.prefix.as_str(), config.layout), ("/l", Layout::Native));
        assert_eq!((config.ttl, config.access), (Some(Duration::from_secs(5)), Access::Creator));
        assert_eq!(config.tick, Some(Duration::from_secs(1)));
        assert!(!format!("{config:?}").contains("se@cret"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, expected) in [
            ("zookeeper://h?ttl=soon", "ttl"),
            ("zookeeper://h?prefix=locks", "prefix"),
            ("zookeeper://h?prefix=/a//b", "prefix"),
            ("zookeeper://h/a/", "path"),
            ("zookeeper://h?layout=own", "layout"),
            ("zookeeper://h?acl=all", "acl"),
            ("zookeeper://h?acl=creator", "user:password"),
            ("zookeeper://me@h", "user:password"),
            ("zookeeper://h?holder=me", "holder"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
