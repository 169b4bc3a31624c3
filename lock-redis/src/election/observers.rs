//! The observers of each channel, which get its pushes as hints.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use lock_core::keep::poison::lock;
use tokio::sync::{Notify, watch};

/// The observers of a session.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    by_channel: Mutex<HashMap<Vec<u8>, Vec<Arc<Notify>>>>,
    /// Whether the session was closed.
    is_closed: watch::Sender<bool>,
}

/// Returns the channel of the lock with this key.
pub(crate) fn channel(database: i64, lock: &[u8]) -> Vec<u8> {
    [format!("distlock:leader:{database}:").as_bytes(), lock].concat()
}

impl Observers {
    /// Makes the observers of a channel look. Returns whether there is one.
    pub(crate) fn hint(&self, channel: &[u8]) -> bool {
        let observers = lock(&self.by_channel);
        let hints = observers.get(channel);
        hints.into_iter().flatten().for_each(|hint| hint.notify_one());
        hints.is_some()
    }

    /// Makes the observers of these locks look.
    pub(crate) fn hint_all(&self, locks: impl Fn(&[u8]) -> bool) {
        for (channel, hints) in &*lock(&self.by_channel) {
            if channel.splitn(4, |byte| *byte == b':').nth(3).is_some_and(&locks) {
                hints.iter().for_each(|hint| hint.notify_one());
            }
        }
    }

    /// Ends all observers.
    pub(crate) fn close(&self) {
        self.is_closed.send_replace(true);
    }

    /// Waits for the end of the session.
    pub(crate) fn end(&self) -> impl Future<Output = ()> + use<> {
        let mut is_closed = self.is_closed.subscribe();
        async move { drop(is_closed.wait_for(|is_closed| *is_closed).await) }
    }

    pub(crate) fn add(&self, channel: &[u8], hint: Arc<Notify>) {
        lock(&self.by_channel).entry(channel.to_owned()).or_default().push(hint);
    }

    /// Removes an observer. Returns whether it was the channel's last one.
    pub(crate) fn remove(&self, channel: &[u8], hint: &Arc<Notify>) -> bool {
        let mut observers = lock(&self.by_channel);
        let Some(hints) = observers.get_mut(channel) else { return false };
        hints.retain(|other| !Arc::ptr_eq(other, hint));
        let last = hints.is_empty();
        if last {
            observers.remove(channel);
        }
        last
    }
}
