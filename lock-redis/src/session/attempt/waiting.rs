//! An attempt that asks or waits: what it learns from answers and pushes, and when it asks again.

use std::time::Duration;

use lock_core::{Clock, Instant, deadline::jitter};

use super::{Attempt, Polls, Queued, Stage};
use crate::wire::answer::Waits;

/// The head asks a foreign holder's key again after this long, then less and less often.
pub(super) const FIRST_ASK: Duration = Duration::from_millis(50);
pub(super) const LONGEST_ASK: Duration = Duration::from_secs(1);
/// Delay after the expiry of the holder's key until the head asks, and the others: the head goes
/// first.
const HEAD_SLACK: Duration = Duration::from_millis(2);
const OTHERS_SLACK: Duration = Duration::from_millis(400);

impl Attempt {
    /// Whether its first request is not answered yet.
    pub(crate) fn is_asking(&self) -> bool {
        self.look(|stage| matches!(stage, Stage::Asking(_)))
    }

    /// Takes note of a push that announces a grant. It may be late: the attempt may have lost that
    /// grant and queued up again. Then its token is not newer than the server's last answer.
    pub(crate) fn pushed(&self, token: u64) {
        self.change(|stage| match stage {
            Stage::Asking(pushed) => *pushed = (*pushed).max(Some(token)),
            Stage::Waiting { sent, note } if token > note.fence => {
                *stage = Stage::Granted { sent: *sent, token };
            }
            _ => {}
        });
    }

    /// Takes note of an answer that the attempt waits. Returns when to ask again, if that is before
    /// the next renewal.
    pub(crate) fn waits(&self, sent: Instant, answer: Waits) -> Option<Instant> {
        self.change(|stage| {
            if !matches!(stage, Stage::Held { .. }) {
                self.found();
            }
            let polls = match stage {
                Stage::Asking(Some(token)) if *token > answer.fence => {
                    *stage = Stage::Granted { sent, token: *token };
                    return None;
                }
                Stage::Asking(_) => Polls::default(),
                Stage::Waiting { sent: before, note } if sent >= *before => note.polls,
                // The server that took over does not know the grant.
                Stage::Held { .. } if self.missing_since().is_some_and(|since| sent >= since) => {
                    self.lose(stage);
                    return None;
                }
                _ => return None,
            };
            self.queue(stage, sent, answer, polls)
        })
    }

    fn queue(
        &self,
        stage: &mut Stage,
        sent: Instant,
        answer: Waits,
        polls: Polls,
    ) -> Option<Instant> {
        let (delay, polls) = self.next_ask(answer, polls);
        let ask = delay.map(|delay| Clock::Boot.now() + delay);
        *stage = Stage::Waiting { sent, note: Queued { fence: answer.fence, ask, polls } };
        ask
    }

    /// Returns the delay until the next question, if it comes before the next renewal. No push
    /// announces that a holder died, or that a foreign one released.
    pub(super) fn next_ask(&self, answer: Waits, polls: Polls) -> (Option<Duration>, Polls) {
        let head = answer.place == Some(1);
        let slack = if head { HEAD_SLACK } else { jitter(OTHERS_SLACK) };
        let expiry = answer.pttl.map(|pttl| pttl + slack);
        let holder = answer.foreign.filter(|_| head);
        // A new foreign holder may release as soon as the first one: the pause starts anew.
        let count = if holder == polls.holder { polls.count } else { 0 };
        let pause = (FIRST_ASK * 2u32.saturating_pow(count)).min(LONGEST_ASK);
        let poll = holder.map(|_| jitter(pause));
        let delay = [expiry, poll].into_iter().flatten().min();
        // A later question is needless: the renewal comes first.
        (delay.filter(|delay| *delay < self.period), Polls { holder, count: (count + 1).min(16) })
    }

    /// Takes note that the attempt still waits. Whether its turn has come is not known, so it asks
    /// again soon. Returns when, if that is before the next renewal.
    pub(crate) fn kept_waiting(&self, asked: Instant) -> Option<Instant> {
        self.change(|stage| match stage {
            Stage::Waiting { sent, note } if asked >= *sent => {
                *sent = asked;
                let soon = LONGEST_ASK < self.period;
                note.ask = soon.then(|| Clock::Boot.now() + LONGEST_ASK);
                note.ask
            }
            _ => None,
        })
    }

    /// Takes note that the server that took over has the attempt in its queue, and does not know
    /// its grant, which the caller does not have yet. Returns the same as [`waits`](Self::waits).
    pub(crate) fn waits_again(&self, sent: Instant, answer: Waits) -> Option<Instant> {
        let since = self.missing_since()?;
        self.change(|stage| {
            if sent < since || !matches!(stage, Stage::Asking(_) | Stage::Granted { .. }) {
                return None;
            }
            self.found();
            self.queue(stage, sent, answer, Polls::default())
        })
    }

    /// Makes an attempt that waits want to ask at once. Returns when.
    pub(crate) fn asks_now(&self) -> Option<Instant> {
        self.change(|stage| match stage {
            Stage::Waiting { note, .. } => {
                note.ask = Some(Clock::Boot.now());
                note.ask
            }
            _ => None,
        })
    }

    /// Whether the attempt still wants to ask at this instant.
    pub(crate) fn asks_at(&self, at: Instant) -> bool {
        self.look(|stage| matches!(stage, Stage::Waiting { note, .. } if note.ask == Some(at)))
    }
}
