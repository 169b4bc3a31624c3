//! `memory:[NAME][?ttl=15s]`.

use std::time::Duration;

use lock_core::{Effect, Result, StoreUrl, keep::errors::unavailable};

use crate::{MemoryLock, MemoryStore};

/// Which of the process's stores a URL means.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MemoryConfig {
    name: String,
    ttl: Option<Duration>,
}

impl MemoryConfig {
    /// Reads `memory:`, `memory:NAME`, and the option `ttl`: the TTL of locks that name none.
    /// Default: 15 s.
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

    /// Connects to the store: the same one for the same name, in the whole process.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the TTL is out of range;
    /// [`Error::Unavailable`](lock_core::Error::Unavailable) after [`refuse_connects`](MemoryStore::refuse_connects).
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn connect(&self) -> Result<MemoryLock> {
        let store = MemoryStore::named(&self.name);
        if store.refuses() {
            let why = "the store refuses connects";
            return Err(unavailable("memory", "connect", Effect::None, why));
        }
        store.client_with(self.ttl)
    }
}
