//! When a client looks at the queues of its waiting attempts.

use std::time::Duration;

use lock_core::{Clock, Instant, deadline::jitter};

use crate::layout::{dialect::Dialect, row::Row};

/// Looks that are due at about the same time are made together.
pub(crate) const TOGETHER: Duration = Duration::from_millis(2);
/// How long after the expiry of the attempt ahead the head looks. The others look later: the head
/// goes first.
const HEAD_SLACK: Duration = Duration::from_millis(2);
const OTHERS_SLACK: Duration = Duration::from_millis(400);
/// How long one look waits for its answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// When to look at a queue, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) why: Why,
    /// How long to wait if nothing is new.
    pub(crate) pace: Duration,
    /// When the first attempt ahead expires, unless it is renewed.
    pub(crate) expiry: Instant,
    /// The version of the whole database at the last look, and when that was.
    pub(crate) seen: Option<(u64, Instant)>,
}

/// Why a look is due. The greater reason counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Why {
    /// The pause since the last look is over.
    Pace,
    /// A change was reported.
    Rung,
    /// An attempt ahead has expired, unless it was renewed.
    Expiry,
}

/// How long the attempt at this place of the queue waits between two looks: the head looks often,
/// the tail seldom.
fn pace(dialect: Dialect, place: usize) -> Duration {
    let (step, longest) = match dialect {
        Dialect::Sqlite => (10, 250),
        Dialect::MySql => (25, 1000),
        // Only in case a push was lost.
        Dialect::Postgres => (5000, 5000),
    };
    let factor = u64::try_from(place.max(1)).unwrap_or(u64::MAX);
    Duration::from_millis(factor.saturating_mul(step).min(longest))
}

/// Time until the first attempt ahead of this place expires. All of them count, not only the one
/// that it waits for: expired ones among the others would seem to stay, and no change would be
/// reported.
pub(crate) fn blocked_for(queue: &[Row], at: usize) -> Duration {
    queue[..at].iter().map(|row| row.left).min().unwrap_or_default()
}

pub(crate) fn next_look(dialect: Dialect, place: usize, left: Duration) -> Look {
    let (now, pace) = (Clock::Boot.now(), jitter(pace(dialect, place)));
    let slack = if place == 1 { HEAD_SLACK } else { jitter(OTHERS_SLACK) };
    let look = Look { at: now, why: Why::Pace, pace, expiry: now + left + slack, seen: None };
    look.after(now)
}

impl Look {
    /// Makes it due now.
    pub(crate) fn ring(&mut self) {
        (self.at, self.why) = (Instant::default(), self.why.max(Why::Rung));
    }

    /// The next look, if this one shows nothing new.
    pub(crate) fn after(self, now: Instant) -> Self {
        match self.expiry <= now + self.pace {
            true => Self { at: self.expiry, why: Why::Expiry, ..self },
            false => Self { at: now + self.pace, why: Why::Pace, ..self },
        }
    }
}
