//! How to reach the nodes, and how to use them.

use std::{collections::HashSet, ops::RangeInclusive, time::Duration};

use lock_core::{
    Encryption, Layout, Result, Secret, StoreUrl, Timeouts, Tls, User,
    keep::{
        errors::invalid,
        limits::{DEFAULT_TTL, LONGEST_TTL},
    },
};

use crate::{
    RedisConfig,
    config::{
        Address,
        url::{addresses, database},
    },
};

const DEFAULT_MAX_TTL: Duration = Duration::from_secs(60);
const MAX_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=LONGEST_TTL;
pub(super) const NODES: RangeInclusive<usize> = 3..=15;

/// Addresses of the servers, login, and use of their keys. The login is the same on all servers.
///
/// With the feature `serde` it can be read from a configuration file: fields by their names,
/// durations as in a URL. `Debug` does not show the password.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct RedlockConfig {
    /// The servers: 3 to 15 of them, best 5. No default.
    pub nodes: Vec<Address>,
    /// The user of the servers' access control lists, read again for each connection, as the
    /// password is. Default: the servers' default user.
    pub user: Option<User>,
    /// The password, which is read again for each connection.
    pub password: Option<Secret>,
    /// The database's number. Default: 0.
    pub database: i64,
    /// The TTL of locks without one of their own, 200 ms to [`max_ttl`](Self::max_ttl). Default: 15
    /// s, or `max_ttl` if that is shorter.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub ttl: Option<Duration>,
    /// The longest TTL, 1 s to 24 h. The votes of a server that has restarted do not count for this
    /// long. All clients of the deployment must have the same one. Default: 1 min.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub max_ttl: Option<Duration>,
    /// Prefix of every key. Default: empty.
    pub prefix: String,
    /// How names become keys. Default: [`Layout::Escaped`].
    pub layout: Layout,
    /// How connections are encrypted. Default: not at all.
    pub tls: Tls,
    /// Time limits, 100 ms to 1 min. `connect` of making a connection; default 3 s. `request` of
    /// one server's answer, after which its vote is given up; default a tenth of the lock's TTL,
    /// 100 ms to 1 s. At most a quarter of the TTL in any case.
    pub timeouts: Timeouts,
}

impl RedlockConfig {
    /// Uses these servers; everything else has its default.
    pub fn new(nodes: impl IntoIterator<Item = Address>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    lock_core::setters! {
        /// Sets [`database`](Self#structfield.database).
        database: i64 => database;
        /// Sets [`ttl`](Self#structfield.ttl), 200 ms to [`max_ttl`](Self#structfield.max_ttl).
        ttl: Duration => Some(ttl);
        /// Sets [`max_ttl`](Self#structfield.max_ttl), 1 s to 24 h.
        max_ttl: Duration => Some(max_ttl);
        /// Sets [`prefix`](Self#structfield.prefix).
        prefix: impl Into<String> => prefix.into();
        /// Sets [`layout`](Self#structfield.layout).
        layout: Layout => layout;
        /// Sets [`tls`](Self#structfield.tls).
        tls: Tls => tls;
        /// Sets [`timeouts`](Self#structfield.timeouts).
        timeouts: Timeouts => timeouts;
    }

    /// Reads a URL: `redlock://[user][:password@]n1,n2,n3[/database][?option=value&..]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if a host is none, or its path is no
    /// database; [`Error::InvalidOption`](lock_core::Error::InvalidOption) for an unknown or wrong
    /// option, for too few hosts, and for one that is named twice.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if url.scheme() != "redlock" {
            return Err(url.error("expected redlock://HOST[:PORT],HOST[:PORT],.."));
        }
        let mut options = url.options();
        let config = Self {
            nodes: addresses(url, Address::PORT)?,
            user: User::from_url(url, &mut options)?,
            password: Secret::from_url(url, &mut options)?,
            database: database(url)?,
            ttl: options.duration("ttl")?,
            max_ttl: options.duration("max_ttl")?,
            prefix: options.text("prefix").unwrap_or_default().to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            tls: Tls::from_options(&mut options, Encryption::Off)?,
            timeouts: Timeouts::from_options(&mut options)?,
        };
        options.finish()?;
        config.check()?;
        Ok(config)
    }

    /// Checks the servers and the times.
    pub(super) fn check(&self) -> Result<()> {
        if !NODES.contains(&self.nodes.len()) {
            let nodes: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
            let allowed = "redlock takes 3 to 15 independent servers, best 5";
            return Err(invalid("nodes", nodes.join(","), allowed));
        }
        let mut met = HashSet::new();
        let mut is_new = |node: &&Address| met.insert((node.host.to_ascii_lowercase(), node.port));
        if let Some(twice) = self.nodes.iter().find(|node| !is_new(node)) {
            return Err(invalid("nodes", twice, "each server once; it is listed twice"));
        }
        if let Some(max) = self.max_ttl.filter(|max| !MAX_TTL.contains(max)) {
            return Err(invalid("max_ttl", format!("{max:?}"), "1s to 24h"));
        }
        self.tls.check()?;
        self.timeouts.check()
    }

    pub(super) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL.min(self.longest_ttl()))
    }

    pub(super) fn longest_ttl(&self) -> Duration {
        self.max_ttl.unwrap_or(DEFAULT_MAX_TTL)
    }

    /// Returns how long a node may take to answer a request for a lock with this TTL.
    pub(super) fn request_limit(&self, ttl: Duration) -> Duration {
        let by_ttl = (ttl / 10).clamp(Duration::from_millis(100), Duration::from_secs(1));
        // An acquire and a renewal need time for a second round within the TTL.
        self.timeouts.request.unwrap_or(by_ttl).min(ttl / 4)
    }

    /// Returns what all nodes have in common, as the configuration of one server.
    pub(super) fn server(&self) -> RedisConfig {
        RedisConfig {
            user: self.user.clone(),
            password: self.password.clone(),
            database: self.database,
            prefix: self.prefix.clone(),
            layout: self.layout,
            tls: self.tls.clone(),
            timeouts: self.timeouts,
            ..RedisConfig::default()
        }
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
             &request_timeout=200ms&connect_timeout=1s&tls=verify&ca=/ca.pem",
        )
        .unwrap();
        let nodes: Vec<_> = c.nodes.iter().map(ToString::to_string).collect();
        assert_eq!(nodes, ["a:6379", "b:7000", "[::1]:6379"]);
        let password = c.password.as_ref().unwrap().read().unwrap();
        assert_eq!((c.user.clone(), &*password), (Some("me".into()), "s"));
        assert_eq!(c.tls, Tls::verify().ca("/ca.pem"));
        assert_eq!((c.database, c.prefix.as_str(), c.layout), (3, "app:", Layout::Native));
        assert_eq!((c.default_ttl().as_secs(), c.longest_ttl().as_secs()), (2, 30));
        assert_eq!(c.request_limit(c.default_ttl()).as_millis(), 200);
        assert_eq!(c.request_limit(Duration::from_millis(400)).as_millis(), 100, "ttl / 4");
        assert_eq!(c.timeouts.connect, Some(Duration::from_secs(1)));
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
            ("redlock://a,b,c?mode=simple", "mode"),
            ("redlock://a,b,c?wait_replicas=1", "wait_replicas"),
            ("redlock://a,b,c?sentinel_user=x", "sentinel_user"),
            ("redlock://a,b,c?max_ttl=1", "max_ttl"),
            ("redlock://a,b,c?ca=x", "tls"),
            ("redlock://a,b,c?request_timeout=1ms", "100ms"),
            ("redlock://me:s@a,b,c?password_env=X", "one password"),
            ("redlock://me:s@a,b,c?user_env=X", "one user"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(word), "{url}: {error}");
        }
        let c = config("redlock://a,b,c").unwrap().max_ttl(Duration::from_millis(1));
        assert!(c.check().unwrap_err().to_string().contains("1s to 24h"));
    }
}
