//! Where etcd is, and how its locks are named.

use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use lock_core::{
    Layout, Result, Secret, StoreUrl, Timeouts, Tls, User,
    keep::{
        limits::DEFAULT_TTL,
        tls::{of_url, plain_password},
    },
};

use crate::{
    layout::keys::Keys,
    session::pool::whole_seconds,
    wire::{dial, login::Login},
};

const DEFAULT_PORT: u16 = 2379;

/// How to reach etcd, and how names become keys. `docs/stores/etcd.md` lists the options of a URL.
///
/// ```
/// # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
/// use distlock::{StoreUrl, etcd::EtcdConfig};
///
/// let url = StoreUrl::parse("etcd://10.0.0.1,10.0.0.2:2479?prefix=locks/&ttl=10s")?;
/// let config = EtcdConfig::from_url(&url)?;
/// assert!(format!("{config:?}").contains("10.0.0.1:2379"));
/// assert!(EtcdConfig::from_url(&StoreUrl::parse("etcd://h?ttl=1500ms")?).is_err());
/// # Ok::<(), lock_core::Error>(())
/// ```
///
/// With the feature `serde` it can be read from a configuration file: the fields by their names,
/// `ttl` as in a URL. `Debug` does not show the password.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct EtcdConfig {
    /// The members, `host` or `host:port`; not used with a given client. Default: `127.0.0.1:2379`.
    pub hosts: Vec<String>,
    /// The user, or where its name is; read anew for each login. Default: no login.
    pub user: Option<User>,
    /// The password of the user, or where it is; read anew for each login. Default: none.
    pub password: Option<Secret>,
    /// How connections are encrypted, and the certificates. Not used with a given client or its
    /// options. Default: not at all.
    pub tls: Tls,
    /// The limits for connecting (4 s for all members together) and for a request (2 s).
    pub timeouts: Timeouts,
    /// The TTL of locks that set none, in whole seconds. Default: 15 s.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "lock_core::duration::deserialize"))]
    pub ttl: Option<Duration>,
    /// Start of every key, verbatim. Default: nothing.
    pub prefix: String,
    /// How names become keys. Default: [`Layout::Escaped`].
    pub layout: Layout,
    /// The caller's client, or its options, instead of hosts and login.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) given: Option<dial::Source>,
}

impl EtcdConfig {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) if the URL is not etcd's or has a path,
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if an option is unknown or wrong.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if !matches!(url.scheme(), "etcd" | "etcds") {
            return Err(url.error("expected etcd://HOST[:PORT][,HOST[:PORT]].."));
        }
        if !url.path().is_empty() {
            return Err(url.error("etcd has no path; to set keys apart, use ?prefix=.."));
        }
        let mut options = url.options();
        let config = Self {
            hosts: url.hosts(DEFAULT_PORT),
            user: User::from_url(url, &mut options)?,
            password: Secret::from_url(url, &mut options)?,
            tls: of_url(url, &mut options, &["etcds"])?,
            timeouts: Timeouts::from_options(&mut options)?,
            ttl: options.duration("ttl")?,
            prefix: options.text("prefix").unwrap_or_default().to_owned(),
            layout: options.choice("layout", Layout::CHOICES)?.unwrap_or_default(),
            given: None,
        };
        whole_seconds("URL option ttl", config.default_ttl())?;
        options.finish()?;
        if config.user.is_none() && config.password.is_some() {
            return Err(url.error(
                "a password needs a user: before the host, as in etcd://USER@HOST, or by user_file \
                 or user_env",
            ));
        }
        Ok(config)
    }

    /// A configuration with these members, `host` or `host:port`, and defaults for everything else.
    pub fn new(hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { hosts: hosts.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Shares the connection of a client, with its login, TLS and endpoints. Everything else has
    /// its default. Sends nothing.
    ///
    /// This is safe, but worse in an outage than connections of our own, which
    /// [`from_options`](Self::from_options) makes: the client keeps asking members that are down,
    /// and does not leave a silent one. [The front page](crate#your-own-client) says what to set.
    pub fn from_client(client: &Client) -> Self {
        Self { given: Some(dial::Source::Client(Box::new(client.clone()))), ..Self::default() }
    }

    /// Makes connections of our own, as a client would: with these endpoints, and with the login
    /// and TLS of these options. Everything else has its default. Sends nothing.
    ///
    /// An endpoint is `host:port`, `http://..` or `https://..`. Each connection requires a leader,
    /// logs in again with the password of the options, and has our HTTP/2 pings and our limits for
    /// connecting. For a
    /// password that may be replaced and for files with certificates, take the fields of this
    /// configuration instead.
    ///
    /// ```
    /// # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
    /// use std::time::Duration;
    /// use distlock::etcd::{EtcdConfig, client::ConnectOptions};
    ///
    /// let options = ConnectOptions::new().with_user("me", "secret");
    /// let config = EtcdConfig::from_options(["10.0.0.1:2379", "10.0.0.2:2379"], options)
    ///     .ttl(Duration::from_secs(5))
    ///     .prefix("locks/");
    /// assert!(!format!("{config:?}").contains("secret"));
    /// ```
    pub fn from_options(
        endpoints: impl IntoIterator<Item = impl Into<String>>,
        options: ConnectOptions,
    ) -> Self {
        let hosts: Vec<String> = endpoints.into_iter().map(Into::into).collect();
        let given = Some(dial::Source::Options(hosts.clone(), Box::new(options)));
        Self { hosts, given, ..Self::default() }
    }

    /// Sets [`user`](Self#structfield.user) and [`password`](Self#structfield.password).
    pub fn login(mut self, user: impl Into<User>, password: impl Into<Secret>) -> Self {
        (self.user, self.password) = (Some(user.into()), Some(password.into()));
        self
    }

    lock_core::setters! {
        /// Sets [`tls`](Self#structfield.tls).
        tls: Tls => tls;
        /// Sets [`timeouts`](Self#structfield.timeouts).
        timeouts: Timeouts => timeouts;
        /// Sets [`ttl`](Self#structfield.ttl), in whole seconds.
        ttl: Duration => Some(ttl);
        /// Sets [`prefix`](Self#structfield.prefix).
        prefix: impl Into<String> => prefix.into();
        /// Sets [`layout`](Self#structfield.layout).
        layout: Layout => layout;
    }

    pub(crate) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL)
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys { prefix: self.prefix.clone(), native: self.layout == Layout::Native }
    }

    /// Says that the password goes through a network as it is, if it does.
    pub(crate) fn open_login(&self) -> Option<String> {
        let has_login = self.user.is_some() && self.given.is_none();
        plain_password(&self.tls, &self.hosts).filter(|_| has_login)
    }

    /// Refuses values that a URL cannot have, and files that are no certificates.
    pub(crate) fn check(&self) -> Result<()> {
        whole_seconds("ttl", self.default_ttl())?;
        self.timeouts.check()?;
        dial::check_tls(&self.tls, &self.source().endpoints())
    }

    /// Returns the source of connections.
    pub(crate) fn source(&self) -> dial::Source {
        let login = self.user.clone().map(|user| {
            Login::new(user, self.password.clone().unwrap_or_else(|| Secret::text("")))
        });
        let endpoints = self.hosts.iter().map(|host| endpoint(host)).collect();
        let configured = || {
            dial::Source::Configured(Box::new(dial::Configured {
                endpoints,
                tls: self.tls.clone(),
                login,
            }))
        };
        self.given.clone().unwrap_or_else(configured)
    }
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            hosts: vec![format!("127.0.0.1:{DEFAULT_PORT}")],
            user: None,
            password: None,
            tls: Tls::default(),
            timeouts: Timeouts::default(),
            ttl: None,
            prefix: String::new(),
            layout: Layout::default(),
            given: None,
        }
    }
}

/// Adds the default port to a host without one. The colons of an IPv6 address are in brackets.
fn endpoint(host: &str) -> String {
    match host[host.rfind(']').unwrap_or(0)..].contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{DEFAULT_PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use lock_core::Encryption;

    use super::*;

    fn config(url: &str) -> Result<EtcdConfig> {
        EtcdConfig::from_url(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn a_url_sets_all_options_and_debug_hides_the_password() {
        let config = config("etcd://me:secret@a,b:1?ttl=7s&prefix=p/&layout=native").unwrap();
        assert_eq!(config.source().endpoints(), ["a:2379", "b:1"]);
        assert_eq!((config.ttl, config.layout), (Some(Duration::from_secs(7)), Layout::Native));
        let shown = format!("{config:?}");
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn a_password_in_plain_text_to_another_machine_is_told() {
        for (url, told) in [
            ("etcd://me:secret@10.0.0.1", true),
            ("etcd://me:secret@localhost,etcd.lab:2379", true),
            ("etcd://me:secret@localhost,127.0.0.1:2379,[::1]:2379", false),
            ("etcds://me:secret@10.0.0.1", false),
            ("etcd://10.0.0.1", false),
        ] {
            assert_eq!(config(url).unwrap().open_login().is_some(), told, "{url}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_file_of_the_program_sets_all_options() {
        let text = r#"{
            "hosts": ["a"], "user": "me", "password": { "file": "/p" },
            "tls": { "mode": "verify", "ca": "/ca.pem", "server_name": "etcd.lab" },
            "timeouts": { "connect": "1s", "request": "500ms" }, "ttl": "7s", "prefix": "p/"
        }"#;
        let config: EtcdConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.user, Some("me".into()));
        assert_eq!(config.password, Some(Secret::file("/p")));
        assert_eq!(config.tls, Tls::verify().ca("/ca.pem").server_name("etcd.lab"));
        assert_eq!(config.timeouts.request, Some(Duration::from_millis(500)));
        assert!(serde_json::from_str::<EtcdConfig>(r#"{ "tls": { "cafile": "/ca" } }"#).is_err());
    }

    #[test]
    fn values_that_no_url_can_have_are_refused() {
        let tls = |tls: Tls| EtcdConfig::default().tls(tls).check().unwrap_err().to_string();
        assert!(tls(Tls::verify().server_name("a b")).contains("a DNS name"));
        let mut prefer = Tls::verify();
        prefer.mode = Encryption::Prefer;
        assert!(tls(prefer).contains("off or verify"));
        let timeouts = Timeouts::default().connect(Duration::ZERO);
        let error = EtcdConfig::default().timeouts(timeouts).check().unwrap_err().to_string();
        assert!(error.contains("connect_timeout"), "{error}");
    }

    #[test]
    fn a_user_may_be_elsewhere() {
        let config = config("etcd://10.0.0.1?user_file=/u&password_env=P").unwrap();
        assert_eq!(config.user, Some(User::file("/u")));
        assert!(config.open_login().is_some());
        assert!(format!("{config:?}").contains("(file /u)"));
    }

    #[test]
    fn a_bad_url_is_refused_with_the_reason() {
        for (url, expected) in [
            ("redis://h", "etcd://"),
            ("etcd://h/locks", "prefix"),
            ("etcd://h?ttl=1500ms", "whole seconds"),
            ("etcd://h?layout=raw", "native"),
            ("etcd://h?holder=me", "unknown option"),
            ("etcd://:secret@h", "needs a user"),
            ("etcd://h?password_env=P", "needs a user"),
            ("etcd://me:secret@h?password_file=/p", "one password"),
            ("etcd://me:secret@h?user_file=/u", "one user"),
            ("etcd://h?ca=/ca.pem", "needs tls=verify"),
            ("etcd://h?tls=prefer", "off, verify"),
            ("etcd://h?tls=verify&cert=/c.pem", "need each other"),
            ("etcd://h?request_timeout=1ms", "100ms to 1m"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
