//! The stores behind URLs.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
};

use lock_core::keep::poison::lock;

use super::MemoryStore;

static STORES: LazyLock<Mutex<HashMap<String, MemoryStore>>> = LazyLock::new(Mutex::default);

impl MemoryStore {
    /// Returns the store behind the URL `memory:NAME` in this process, `""` for that of `memory:`.
    /// It is made at the first use of its name, here or by a URL, and lives as long as the process.
    /// So tests that run at the same time need names of their own.
    ///
    /// ```
    /// # mod distlock {
    /// #     pub use {lock_core::*, lock_memory as memory};
    /// #     pub async fn connect(url: &str) -> Result<Locks> {
    /// #         let config = memory::MemoryConfig::from_url(&url.parse()?)?;
    /// #         memory::MemoryLock::connect(config).await.map(Locks::new)
    /// #     }
    /// # }
    /// use distlock::memory::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> distlock::Result<()> {
    /// let locks = distlock::connect("memory:t2").await?; // somewhere in the code under test
    /// let guard = locks.lock("orders/42")?.acquire().await?;
    ///
    /// let store = MemoryStore::named("t2");
    /// assert_eq!(store.contents()[0].0.as_str(), "orders/42");
    /// store.expire(guard.name());
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub fn named(name: impl AsRef<str>) -> Self {
        lock(&STORES).entry(name.as_ref().to_owned()).or_default().clone()
    }

    /// Puts this store behind the URL `memory:NAME` in this process, in place of the one that was
    /// there, so that a program under test meets a [broken](Self::broken) store.
    #[cfg(feature = "properties")]
    pub fn put(&self, name: impl Into<String>) {
        lock(&STORES).insert(name.into(), self.clone());
    }
}
