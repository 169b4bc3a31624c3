//! What all clients of one database share within this process.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, Weak},
};

use lock_core::keep::poison::lock;

/// A value for each database, as long as a client has it.
pub(crate) type Shared<T> = LazyLock<Mutex<HashMap<String, Weak<T>>>>;

/// The value for this database. It is made if no client has it.
pub(crate) fn share<T>(all: &Shared<T>, database: &str, make: impl FnOnce() -> T) -> Arc<T> {
    let mut all = lock(all);
    all.retain(|_, value| value.strong_count() > 0);
    let known = all.entry(database.to_owned()).or_default();
    known.upgrade().unwrap_or_else(|| {
        let value = Arc::new(make());
        *known = Arc::downgrade(&value);
        value
    })
}
