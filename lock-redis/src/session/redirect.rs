//! What a client does when slots have other owners.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, deadline::jitter};
use redis::RedisError;
use tokio::time::{sleep, timeout};

use super::{Routes, Session, slots::Slots};
use crate::{error, wire::slots};

/// Shortest and longest pause between two questions while a node does not answer.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// Shortest pause between two questions.
const SHORTEST: Duration = Duration::from_millis(20);

impl Session {
    /// Reads whether an error is a redirection to another node, and takes note of it.
    pub(crate) fn is_redirected(&self, error: &RedisError) -> bool {
        let (Routes::Slots(slots), Some((slot, to))) = (&self.routes, error::moved(error)) else {
            return false;
        };
        if let Some(address) = slots::target(to, "") {
            slots.redirected(slot, &address);
        }
        true
    }
}

/// The pause after an outage of this length so far: its end is noticed after a tenth of it.
fn pause_after(outage: Duration) -> Duration {
    (outage / 10).clamp(PAUSE, LONGEST)
}

/// Keeps the slots up to date from now on.
pub(super) async fn keep_slots(session: Weak<Session>, slots: Arc<Slots>) {
    let mut outage = None;
    loop {
        match slots.is_incomplete() {
            true => {
                let now = Clock::Boot.now();
                let pause = pause_after(now.since(*outage.get_or_insert(now)));
                drop(timeout(pause, slots.stale.notified()).await);
            }
            false => {
                outage = None;
                slots.stale.notified().await;
            }
        }
        // While a session closes, its releases may need the new owners.
        if session.upgrade().is_none() || slots.is_closed() {
            return;
        }
        if let Ok(shards) = slots.ask().await {
            // Nobody closes a node that comes after the close.
            let Some(session) = session.upgrade().filter(|_| !slots.is_closed()) else { return };
            for (node, takes_over) in slots.take_in(&shards) {
                if takes_over {
                    // Its first answer may take long.
                    session.doubt(&node);
                }
                session.keep_connected(&node);
            }
        }
        sleep(SHORTEST + jitter(SHORTEST)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_an_outage_lasts_the_less_often_is_asked() {
        let (mut asked, mut outage) = (0, Duration::ZERO);
        while outage < Duration::from_secs(600) {
            outage += pause_after(outage);
            asked += 1;
        }
        assert!((100..=200).contains(&asked), "{asked}");
        assert_eq!(pause_after(Duration::from_secs(1)), PAUSE);
    }
}
