//! The observers of each channel, which get its pushes as hints.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lock_core::keep::poison::lock;
use tokio::sync::Notify;

/// The observers of a session, per channel.
#[derive(Debug, Default)]
pub(crate) struct Observers(Mutex<HashMap<Vec<u8>, Vec<Arc<Notify>>>>);

impl Observers {
    /// Makes the observers of a channel look. Returns whether there is one.
    pub(crate) fn hint(&self, channel: &[u8]) -> bool {
        let observers = lock(&self.0);
        let hints = observers.get(channel);
        hints.into_iter().flatten().for_each(|hint| hint.notify_one());
        hints.is_some()
    }

    pub(crate) fn add(&self, channel: &[u8], hint: Arc<Notify>) {
        lock(&self.0).entry(channel.to_owned()).or_default().push(hint);
    }

    /// Removes an observer. Returns whether it was the channel's last one.
    pub(crate) fn remove(&self, channel: &[u8], hint: &Arc<Notify>) -> bool {
        let mut observers = lock(&self.0);
        let Some(hints) = observers.get_mut(channel) else { return false };
        hints.retain(|other| !Arc::ptr_eq(other, hint));
        let last = hints.is_empty();
        if last {
            observers.remove(channel);
        }
        last
    }
}
