//! Who observes which channel, and hears what is published there.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use lock_core::keep::poison::lock;
use tokio::sync::mpsc;

/// Who observes what in a session, per channel.
#[derive(Debug, Default)]
pub(crate) struct Observers(Mutex<HashMap<Vec<u8>, Vec<Arc<Ear>>>>);

/// What one observer hears.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) pushes: mpsc::Sender<Vec<u8>>,
    pub(crate) missed: AtomicBool,
}

impl Observers {
    /// Passes a push on. Answers whether anybody observes this channel.
    pub(crate) fn tell(&self, channel: &[u8], payload: &[u8]) -> bool {
        let observers = lock(&self.0);
        let ears = observers.get(channel);
        ears.into_iter().flatten().for_each(|ear| ear.hear(payload));
        ears.is_some()
    }

    pub(crate) fn add(&self, channel: &[u8], ear: Arc<Ear>) {
        lock(&self.0).entry(channel.to_owned()).or_default().push(ear);
    }

    /// Answers whether it was the channel's last one.
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
    /// Never waits: who does not listen in time looks later.
    fn hear(&self, payload: &[u8]) {
        if self.pushes.try_send(payload.to_owned()).is_err() {
            self.missed.store(true, Ordering::Release);
            // Heard if there is room by now: then the flag may have been looked at too early.
            let _ = self.pushes.try_send(Vec::new());
        }
    }
}
