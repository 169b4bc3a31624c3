//! The stores that URLs name.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use super::MemoryStore;

impl MemoryStore {
    /// The store behind the URL `memory:NAME` in this process, `""` for that of `memory:`. It is made
    /// when it is first named, here or by a URL, and lives as long as the process; so tests that run
    /// beside each other take names of their own.
    ///
    /// ```
    /// # use lock_core::Locks;
    /// # use lock_memory::{MemoryConfig, MemoryStore};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> lock_core::Result<()> {
    /// # let connect = || MemoryConfig::from_url(&"memory:t2".parse()?)?.connect().map(Locks::new);
    /// let locks = connect()?; // distlock::connect("memory:t2"), somewhere in the code under test
    /// let guard = locks.lock("orders/42")?.acquire().await?;
    ///
    /// let store = MemoryStore::named("t2");
    /// assert_eq!(store.contents()[0].0.as_str(), "orders/42");
    /// store.expire(guard.name());
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub fn named(name: impl AsRef<str>) -> Self {
        static STORES: LazyLock<Mutex<HashMap<String, MemoryStore>>> =
            LazyLock::new(Mutex::default);
        // Nothing panics while it is held.
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(name.as_ref().to_owned()).or_default().clone()
    }
}
