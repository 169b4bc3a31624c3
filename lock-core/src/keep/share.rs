//! Values that are shared by their names, such as what the observers of a lock have in common.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, Weak},
};

use crate::keep::poison::lock;

/// The values by their names. Each is there as long as it is in use. The name of one that is not
/// stays until there is no room for another one.
pub type Shared<K, T> = Mutex<HashMap<K, Weak<T>>>;

/// The value with this name. It is made if it is not in use.
pub fn share<K: Eq + Hash, T>(all: &Shared<K, T>, name: K, make: impl FnOnce() -> T) -> Arc<T> {
    let mut all = lock(all);
    // Before the table would grow, not at each call: 10,000 names may be in use.
    if all.len() == all.capacity() {
        all.retain(|_, value| value.strong_count() > 0);
        let in_use = all.len();
        all.reserve(in_use + 1);
    }
    let known = all.entry(name).or_default();
    known.upgrade().unwrap_or_else(|| {
        let value = Arc::new(make());
        *known = Arc::downgrade(&value);
        value
    })
}
