//! The observers of each channel, which get its pushes.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use lock_core::keep::poison::lock;
use tokio::sync::mpsc;

/// The observers of a session, per channel.
#[derive(Debug, Default)]
pub(crate) struct Observers(Mutex<HashMap<Vec<u8>, Vec<Arc<Ear>>>>);

/// The pushes for one observer.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) pushes: mpsc::Sender<Vec<u8>>,
    pub(crate) missed: AtomicBool,
}

impl Observers {
    /// Passes a push on. Returns whether this channel has an observer.
    pub(crate) fn tell(&self, channel: &[u8], payload: &[u8]) -> bool {
        let observers = lock(&self.0);
        let ears = observers.get(channel);
        ears.into_iter().flatten().for_each(|ear| ear.hear(payload));
        ears.is_some()
    }

    pub(crate) fn add(&self, channel: &[u8], ear: Arc<Ear>) {
        lock(&self.0).entry(channel.to_owned()).or_default().push(ear);
    }

    /// Removes an observer. Returns whether it was the channel's last one.
    pub(crate) fn remove(&self, channel: &[u8], ear: &Arc<Ear>) -> bool {
        let mut observers = lock(&self.0);
        let Some(ears) = observers.get_mut(channel) else { return false };
        ears.retain(|other| !Arc::ptr_eq(other, ear));
        let last = ears.is_empty();
        if last {
            observers.remove(channel);
        }
        last
    }
}

impl Ear {
    /// Never waits: an observer that does not read in time looks later.
    fn hear(&self, payload: &[u8]) {
        if self.pushes.try_send(payload.to_owned()).is_err() {
            self.missed.store(true, Ordering::Release);
            // Fits if there is room by now. Then the observer may have read the flag before it was
            // set.
            let _ = self.pushes.try_send(Vec::new());
        }
    }
}
