//! When to look whether a guard outlives its lost lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Instant;

/// The time of the look; `NEVER` once it is over. None before the loss was found: no reading is 0.
#[derive(Debug, Default)]
pub(crate) struct Look(AtomicU64);

impl Look {
    /// Sets the time, unless there was one.
    pub(crate) fn set(&self, at: Instant) {
        let _ = self.0.compare_exchange(0, at.nanos(), Ordering::AcqRel, Ordering::Acquire);
    }

    /// The time, while the look is to come.
    pub(crate) fn at(&self) -> Option<Instant> {
        let at = Instant::from_nanos(self.0.load(Ordering::Acquire));
        (at != Instant::default() && at != Instant::NEVER).then_some(at)
    }

    /// Ends it: somebody has noticed the loss, or the guard has gone.
    pub(crate) fn end(&self) {
        self.0.store(Instant::NEVER.nanos(), Ordering::Release);
    }

    /// Ends it if its time has come; returns whether it did.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let (due, over) = (self.at().filter(|at| *at <= now), Instant::NEVER.nanos());
        due.is_some_and(|at| {
            let taken =
                self.0.compare_exchange(at.nanos(), over, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_taken_once_and_when_it_is_due() {
        let (look, at) = (Look::default(), Instant::from_nanos(7));
        assert!(!look.take(at));
        look.set(at);
        look.set(Instant::from_nanos(9));
        assert_eq!(look.at(), Some(at));
        assert!(!look.take(Instant::from_nanos(6)));
        assert!(look.take(at) && !look.take(at));
        look.set(at);
        assert_eq!(look.at(), None);
    }

    #[test]
    fn a_loss_that_was_noticed_is_not_looked_at() {
        let look = Look::default();
        look.set(Instant::from_nanos(7));
        look.end();
        assert!(!look.take(Instant::NEVER));
    }
}
