//! `memory:[NAME][?ttl=15s]`.

use std::time::Duration;

use lock_core::{Result, StoreUrl};

/// The name of a store of this process, and the default TTL.
///
/// With the feature `serde` it can be read from a configuration file: fields by their names, `ttl`
/// as in a URL.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct MemoryConfig {
    /// The store's name, as in [`MemoryStore::named`](crate::MemoryStore::named). Default: the
    /// empty name, of `memory:`.
    pub name: String,
    /// The TTL of locks without one of their own, 200 ms to 24 h. Default: 15 s.
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "lock_core::duration::deserialize")
    )]
    pub ttl: Option<Duration>,
}

impl MemoryConfig {
    /// Reads `memory:`, `memory:NAME`, and the option `ttl`: the TTL of locks without one of their
    /// own. Default: 15 s.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`](lock_core::Error::InvalidUrl) for `memory://..`, as there is no host;
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) for other options.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        let mut options = url.options();
        let ttl = options.duration("ttl")?;
        options.finish()?;
        if url.has_authority() {
            return Err(url.error("a store in memory has no host: write memory: or memory:NAME"));
        }
        Ok(Self { name: url.path().to_owned(), ttl })
    }

    /// Uses the store with this name; everything else has its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets [`ttl`](Self#structfield.ttl), 200 ms to 24 h.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}
