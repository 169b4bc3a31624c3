//! The observers of each name, which are woken when its leader may have changed.

use std::sync::{Arc, Weak};

use lock_core::{
    LockName,
    keep::{
        poison::lock,
        share::{Shared, share},
    },
};
use tokio::sync::watch;

/// Rings for all observers of a name.
pub(super) type Bell = watch::Sender<()>;

/// The observers of a session, by name.
#[derive(Debug, Default)]
pub(crate) struct Observers(Shared<LockName, Bell>);

impl Observers {
    /// The bell of this name, as long as an observer has it.
    pub(super) fn bell(&self, name: &LockName) -> Arc<Bell> {
        share(&self.0, name.clone(), Bell::default)
    }

    /// Makes the observers of this name look now.
    pub(crate) fn ring(&self, name: &LockName) {
        let bell = lock(&self.0).get(name).and_then(Weak::upgrade);
        bell.iter().for_each(|bell| bell.send_replace(()));
    }

    pub(crate) fn ring_all(&self) {
        let bells: Vec<_> = lock(&self.0).values().filter_map(Weak::upgrade).collect();
        bells.iter().for_each(|bell| bell.send_replace(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observers_that_have_ended_leave_nothing() {
        let observers = Observers::default();
        for name in ["a", "b", "c"] {
            drop(observers.bell(&LockName::new(name).unwrap()));
        }
        let stays = observers.bell(&LockName::new("d").unwrap());
        assert_eq!(lock(&observers.0).len(), 1);
        assert!(Arc::ptr_eq(&stays, &observers.bell(&LockName::new("d").unwrap())));
    }
}
