//! The observers of each name, which are woken when its leader may have changed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use lock_core::{LockName, keep::poison::lock};
use tokio::sync::Notify;

/// The observers of a session, by name.
#[derive(Debug, Default)]
pub(crate) struct Observers(Mutex<HashMap<LockName, Vec<Weak<Notify>>>>);

impl Observers {
    pub(super) fn add(&self, name: &LockName) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        let mut observers = lock(&self.0);
        observers.retain(|_, bells| {
            bells.retain(|bell| bell.strong_count() > 0);
            !bells.is_empty()
        });
        observers.entry(name.clone()).or_default().push(Arc::downgrade(&bell));
        bell
    }

    /// Makes the observers of this name look now.
    pub(crate) fn ring(&self, name: &LockName) {
        let observers = lock(&self.0);
        let bells = observers.get(name).into_iter().flatten();
        bells.filter_map(Weak::upgrade).for_each(|bell| bell.notify_one());
    }

    pub(crate) fn ring_all(&self) {
        let observers = lock(&self.0);
        let bells = observers.values().flatten();
        bells.filter_map(Weak::upgrade).for_each(|bell| bell.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observers_that_have_ended_leave_nothing_beside_one_that_stays() {
        let (observers, name) = (Observers::default(), LockName::new("n").unwrap());
        let _stays = observers.add(&name);
        for _ in 0..100 {
            drop(observers.add(&name));
        }
        assert!(lock(&observers.0)[&name].len() <= 2);
    }
}
