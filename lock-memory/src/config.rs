//! `memory:[NAME]`.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use lock_core::{Result, StoreUrl};

use crate::MemoryStore;

/// Which of the process's stores a URL means.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MemoryConfig {
    name: String,
}

impl MemoryConfig {
    /// Reads `memory:` or `memory:NAME`. There are no options.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the URL has any.
    pub fn from_url(url: &StoreUrl) -> Result<Self> {
        url.options().finish()?;
        Ok(Self { name: url.path().to_owned() })
    }

    /// The store: the same one for the same name, in the whole process.
    pub fn store(&self) -> MemoryStore {
        static STORES: LazyLock<Mutex<HashMap<String, MemoryStore>>> =
            LazyLock::new(Mutex::default);
        // Nothing panics while it is held.
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(self.name.clone()).or_default().clone()
    }
}
