//! Attempts whose own nodes are not watched: not yet, or since there is no room.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::sync::Notify;

use super::attempt::Attempt;

/// How old a node gets before it is watched.
const YOUTH: Duration = Duration::from_millis(100);
/// The shortest time between two looks of the task.
const STEP: Duration = Duration::from_millis(50);

/// Attempts in order of age, each of which waits equally long; and attempts that found no room.
#[derive(Debug, Default)]
pub(crate) struct Unwatched {
    queue: Mutex<VecDeque<(Instant, Weak<Attempt>)>>,
    left_out: Mutex<Vec<Weak<Attempt>>>,
    /// Rings when an attempt finds no room.
    pub(super) crowded: Arc<Notify>,
    /// Rings when the first attempt in the queue is another one.
    pub(super) first: Arc<Notify>,
}

impl Unwatched {
    /// Adds an attempt whose node was just created.
    pub(crate) fn add(&self, attempt: &Arc<Attempt>) {
        let mut queue = lock(&self.queue);
        queue.push_back((Clock::Boot.now() + YOUTH, Arc::downgrade(attempt)));
        if queue.len() == 1 {
            self.first.notify_one();
        }
    }

    /// Watches an attempt before its time.
    pub(crate) fn hurry(&self, attempt: &Arc<Attempt>) {
        if !attempt.is_watched() {
            lock(&self.queue).push_front((Clock::Boot.now(), Arc::downgrade(attempt)));
            self.first.notify_one();
        }
    }

    /// Takes the attempts that are old enough. Returns also when to come back if no attempt comes
    /// meanwhile.
    pub(super) fn grown_up(&self, now: Instant) -> (Vec<Arc<Attempt>>, Duration) {
        let mut queue = lock(&self.queue);
        let mut grown = Vec::new();
        while queue.front().is_some_and(|(due, _)| *due <= now) {
            let attempt = queue.pop_front().and_then(|(_, attempt)| attempt.upgrade());
            grown.extend(attempt.filter(|attempt| !attempt.has_ended() && attempt.guard()));
        }
        if queue.is_empty() {
            queue.shrink_to(64);
        }
        (grown, queue.front().map_or(Duration::MAX, |(due, _)| due.since(now).max(STEP)))
    }

    /// Adds an attempt for which there was no room.
    pub(super) fn leave_out(&self, attempt: &Arc<Attempt>) {
        lock(&self.left_out).push(Arc::downgrade(attempt));
        self.crowded.notify_one();
    }

    /// Returns the attempts without a watch that wait or hold. After a loss no look is needed.
    pub(super) fn left_out(&self) -> Vec<Arc<Attempt>> {
        let mut left_out = lock(&self.left_out);
        let matters = |attempt: Arc<Attempt>| !attempt.has_ended() && !attempt.is_lost();
        left_out.retain(|attempt| attempt.upgrade().is_some_and(matters));
        left_out.iter().filter_map(Weak::upgrade).collect()
    }
}
