//! Entries that attempts have left in the store, until their session's janitor has removed them.
//!
//! The janitor is a task of the driver. It tries new entries at once, and refused ones again after
//! a pause, each longer than the one before. New entries do not change these pauses.

use std::{sync::Mutex, time::Duration};

use tokio::sync::Notify;

use crate::{
    Clock, Instant,
    keep::{backoff::Backoff, poison::lock},
};

/// The entries that are left to remove in one session.
#[derive(Debug)]
pub struct Leftovers<T> {
    state: Mutex<State<T>>,
    more: Notify,
    /// From the first one.
    pauses: Backoff,
}

#[derive(Debug)]
struct State<T> {
    new: Vec<T>,
    refused: Vec<T>,
    /// When to try the refused entries again.
    again: Instant,
    pause: Backoff,
    /// Whether a janitor is at work.
    working: bool,
}

/// The entries for a janitor to remove now.
#[derive(Debug)]
pub struct ToRemove<T> {
    /// Not tried yet.
    pub new: Vec<T>,
    /// Refused before.
    pub again: Vec<T>,
}

impl<T> Leftovers<T> {
    /// No entries. Refused entries are tried again after the first pause, which is doubled up to
    /// the longest.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let (new, refused, pauses) = (Vec::new(), Vec::new(), Backoff::new(first, longest));
        let state = State { new, refused, again: Instant::NEVER, pause: pauses, working: false };
        Self { state: Mutex::new(state), more: Notify::new(), pauses }
    }

    /// Leaves an entry to the janitor.
    pub fn add(&self, leftover: T) {
        lock(&self.state).new.push(leftover);
        self.ring();
    }

    /// Wakes the janitor.
    pub fn ring(&self) {
        self.more.notify_one();
    }

    /// Returns whether a janitor must be started: none is at work. From now on one is.
    pub fn start(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).working, true)
    }

    /// Returns whether no entry is left: the janitor then counts as stopped.
    pub fn rest(&self) -> bool {
        let mut state = lock(&self.state);
        state.working = !state.new.is_empty() || !state.refused.is_empty();
        !state.working
    }

    /// Forgets all entries: they end with the session.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.new.clear();
        state.refused.clear();
    }

    /// Waits until the janitor is woken, or a refused entry is due.
    pub async fn wait(&self) {
        let again = lock(&self.state).again;
        tokio::select! {
            () = self.more.notified() => {}
            () = Clock::Boot.sleep_until(again) => {}
        }
    }

    /// Takes the entries to remove now.
    pub fn take(&self, now: Instant) -> ToRemove<T> {
        let mut state = lock(&self.state);
        let again = match now >= state.again {
            true => {
                state.again = Instant::NEVER;
                std::mem::take(&mut state.refused)
            }
            false => Vec::new(),
        };
        ToRemove { new: std::mem::take(&mut state.new), again }
    }

    /// Records entries that were refused just now. If no refused entry is left, the pauses start
    /// anew.
    pub fn refused(&self, leftovers: Vec<T>, now: Instant) {
        let mut state = lock(&self.state);
        state.refused.extend(leftovers);
        if state.refused.is_empty() {
            (state.again, state.pause) = (Instant::NEVER, self.pauses);
        } else if state.again == Instant::NEVER {
            state.again = now + state.pause.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    #[test]
    fn later_refusals_do_not_advance_the_next_try() {
        let (left, now) = (Leftovers::new(PAUSE, PAUSE * 30), Clock::Boot.now());
        let again = |at| left.take(at).again;
        left.refused(vec!["a"], now);
        left.refused(vec!["b"], now + PAUSE / 2);
        assert!(again(now + PAUSE / 2).is_empty());
        let both = again(now + PAUSE);
        assert_eq!(both, ["a", "b"]);
        left.refused(both, now + PAUSE);
        assert!(again(now + PAUSE * 2).is_empty(), "each pause is longer");
        assert_eq!(again(now + PAUSE * 3).len(), 2);
        left.refused(Vec::new(), now);
        left.refused(vec!["c"], now);
        assert_eq!(again(now + PAUSE), ["c"], "the pauses begin anew");
    }

    #[test]
    fn a_janitor_rests_when_nothing_is_left_and_is_started_once() {
        let left = Leftovers::new(PAUSE, PAUSE);
        assert!(left.start() && !left.start());
        left.add("a");
        assert!(!left.rest() && !left.start());
        left.clear();
        assert!(left.rest() && left.start());
    }
}
