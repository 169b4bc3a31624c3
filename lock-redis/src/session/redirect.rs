//! What a client does when slots have other owners.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use lock_core::{Clock, deadline::jitter};
use redis::RedisError;
use tokio::time::{sleep, timeout};

use super::{
    Routes, Session,
    slots::{Added, Slots},
};
use crate::{config::Address, error, wire::slots};

/// Pause between two questions while a node does not answer.
const PAUSE: Duration = Duration::from_millis(200);
/// Shortest pause between two questions.
const SHORTEST: Duration = Duration::from_millis(20);

impl Session {
    /// Reads whether an error is a redirection to another node, and takes note of it.
    pub(crate) fn is_redirected(&self, from: Option<&Address>, error: &RedisError) -> bool {
        let (Routes::Slots(slots), Some((slot, to))) = (&self.routes, error::moved(error)) else {
            return false;
        };
        let nowhere = Address::new("", 0);
        if let Some(address) = slots::target(to, from.unwrap_or(&nowhere)) {
            slots.redirected(slot, &address);
        }
        true
    }

    /// Keeps the slots up to date from now on.
    pub(super) fn keep_slots(self: &Arc<Self>, slots: &Arc<Slots>) {
        tokio::spawn(keep_slots(Arc::downgrade(self), slots.clone()));
    }
}

async fn keep_slots(session: Weak<Session>, slots: Arc<Slots>) {
    loop {
        match slots.is_incomplete() {
            true => drop(timeout(PAUSE, slots.stale.notified()).await),
            false => slots.stale.notified().await,
        }
        if slots.closed.load(Ordering::Acquire) {
            return;
        }
        if let Ok(shards) = slots.ask().await {
            let Some(session) = session.upgrade() else { return };
            for Added { node, takes_over } in slots.take_in(&shards) {
                if takes_over {
                    // Its first answer may take long.
                    session.doubt_at(&node, Clock::Boot.now());
                }
                session.keep_connected(&node);
            }
        }
        sleep(SHORTEST + jitter(SHORTEST)).await;
    }
}
