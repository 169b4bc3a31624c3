//! Where etcd is and how its locks are named.

use std::{fmt, time::Duration};

use etcd_client::{Client, ConnectOptions};
use lock_core::{Error, Result, StoreUrl, duration::shown, keep::limits::DEFAULT_TTL};

use crate::{
    layout::keys::Layout,
    wire::dial::{self, Source},
};

/// How to reach etcd: what `etcd://[user:password@]host[:port][,host[:port]]..[?option=value&..]`
/// says.
///
/// | option | means | default |
/// |---|---|---|
/// | `ttl` | the TTL of a lock whose builder names none, in whole seconds | `15s` |
/// | `prefix` | what all keys start with, verbatim, as in `locks/` | nothing |
/// | `layout` | `escaped`: any name; `native`: names as foreign clients write them | `escaped` |
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
#[derive(Clone)]
pub struct EtcdConfig {
    pub(crate) source: Source,
    user: Option<String>,
    pub(crate) layout: Layout,
    pub(crate) default_ttl: Duration,
}

impl EtcdConfig {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if it is not etcd's or has a path, [`Error::InvalidOption`] if an
    /// option is unknown or wrong.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        if url.scheme() != "etcd" {
            return Err(url.error("expected etcd://HOST[:PORT][,HOST[:PORT]].."));
        }
        if !url.path().is_empty() {
            return Err(url.error("etcd has no path; to set keys apart, use ?prefix=.."));
        }
        let mut options = url.options();
        let default_ttl = options.duration("ttl")?.unwrap_or(DEFAULT_TTL);
        whole_seconds("URL option ttl", default_ttl)?;
        let prefix = options.text("prefix").unwrap_or_default().to_owned();
        let native =
            options.choice("layout", &[("escaped", false), ("native", true)])?.unwrap_or_default();
        options.finish()?;
        let password = url.password().unwrap_or_default();
        let login = url.user().map(|user| (user, password));
        Ok(Self {
            source: Source::Options(url.hosts(2379), dial::options(login)),
            user: url.user().map(str::to_owned),
            layout: Layout { prefix, native },
            default_ttl,
        })
    }

    /// Shares the connection of a client, with its login, TLS and endpoints; everything else by default.
    /// Nothing is sent.
    ///
    /// Safe, but worse in an outage than connections of our own, which
    /// [`from_options`](Self::from_options) makes: the client goes on asking members that are down, and
    /// does not leave one that is silent. [The front page](crate#your-own-client) says what to set.
    pub fn from_client(client: &Client) -> Self {
        Self::new(Source::Client(Box::new(client.clone())))
    }

    /// Connections of our own, made as a client would make them: with these endpoints, and with the
    /// login, TLS and HTTP/2 pings of these options. Everything else by default. Nothing is sent.
    ///
    /// An endpoint is `host:port`, or `http://..`; or `https://..` where the client crate is built with
    /// TLS. Each connection requires a leader, logs in again, and has our limits for connecting.
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
        let endpoints = endpoints.into_iter().map(Into::into).collect();
        Self::new(Source::Options(endpoints, Box::new(options)))
    }

    fn new(source: Source) -> Self {
        let layout = Layout { prefix: String::new(), native: false };
        Self { source, user: None, layout, default_ttl: DEFAULT_TTL }
    }

    /// Sets the TTL of a lock whose builder names none, in whole seconds. Default: 15 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.default_ttl = ttl;
        self
    }

    /// Sets what all keys start with, verbatim. Default: nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.layout.prefix = prefix.into();
        self
    }

    /// Takes names as foreign clients write them, as `layout=native` does. Default: any name, escaped.
    pub fn native_names(mut self) -> Self {
        self.layout.native = true;
        self
    }
}

/// etcd counts TTLs in whole seconds; rounding would promise what it does not keep.
pub(crate) fn whole_seconds(option: &str, ttl: Duration) -> Result<u64> {
    if ttl.subsec_nanos() == 0 {
        return Ok(ttl.as_secs());
    }
    Err(Error::InvalidOption {
        option: option.to_owned(),
        value: shown(ttl).to_string(),
        allowed: "etcd counts TTLs in whole seconds".to_owned(),
    })
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("endpoints", &self.source)
            .field("user", &self.user)
            .field("layout", &self.layout)
            .field("default_ttl", &self.default_ttl)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<EtcdConfig> {
        EtcdConfig::from_url(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn a_url_says_it_all_and_debug_keeps_the_secret() {
        let config = config("etcd://me:secret@a,b:1?ttl=7s&prefix=p/&layout=native").unwrap();
        assert_eq!(config.source.endpoints(), ["a:2379", "b:1"]);
        assert_eq!(config.default_ttl, Duration::from_secs(7));
        let shown = format!("{config:?}");
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, expected) in [
            ("redis://h", "etcd://"),
            ("etcd://h/locks", "prefix"),
            ("etcd://h?ttl=1500ms", "whole seconds"),
            ("etcd://h?layout=raw", "native"),
            ("etcd://h?holder=me", "unknown option"),
        ] {
            let error = config(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
