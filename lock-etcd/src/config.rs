//! Where etcd is and how its locks are named.

use std::{fmt, time::Duration};

use lock_core::{Error, Result, StoreUrl, duration::shown};

use crate::layout::Layout;

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
/// use lock_core::StoreUrl;
/// use lock_etcd::EtcdConfig;
///
/// let url = StoreUrl::parse("etcd://10.0.0.1,10.0.0.2:2479?prefix=locks/&ttl=10s")?;
/// let config = EtcdConfig::from_url(&url)?;
/// assert!(format!("{config:?}").contains("10.0.0.1:2379"));
/// assert!(EtcdConfig::from_url(&StoreUrl::parse("etcd://h?ttl=1500ms")?).is_err());
/// # Ok::<(), lock_core::Error>(())
/// ```
#[derive(Clone)]
pub struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) login: Option<(String, String)>,
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
        let default_ttl = options.duration("ttl")?.unwrap_or(Duration::from_secs(15));
        whole_seconds("URL option ttl", default_ttl)?;
        let prefix = options.text("prefix").unwrap_or_default().to_owned();
        let native =
            options.choice("layout", &[("escaped", false), ("native", true)])?.unwrap_or_default();
        options.finish()?;
        let password = url.password().unwrap_or_default();
        Ok(Self {
            endpoints: url.hosts(2379),
            login: url.user().map(|user| (user.to_owned(), password.to_owned())),
            layout: Layout { prefix, native },
            default_ttl,
        })
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
            .field("endpoints", &self.endpoints)
            .field("user", &self.login.as_ref().map(|(user, _)| user))
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
        assert_eq!(config.endpoints, ["a:2379", "b:1"]);
        assert_eq!(config.default_ttl, Duration::from_secs(7));
        assert_eq!(config.login, Some(("me".to_owned(), "secret".to_owned())));
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
