//! What an attempt makes of a failover: the new server may not know it. Then its holder is told that
//! the failover lost the lock, as soon as a renewal has shown it.
//!
//! A holder has two doubts, which do not exclude each other: whether another server is taking over
//! (`doubted`), and whether its server still has it (`missing`, with the reason of the loss if not).
//!
//! | `doubted` | `missing` | it came by | a request that finds it | one that does not | one that finds it in the queue |
//! |---|---|---|---|---|---|
//! | no | no | | counts | `EntryGone` | changes nothing |
//! | no | `EntryGone` | [`check`](Attempt::check) | counts, ends `missing` | `EntryGone` | `EntryGone` |
//! | no | `Failover` | [`taken_over`](Attempt::taken_over) | counts, ends `missing` | `Failover` | `Failover` |
//! | yes | no | [`doubt`](Attempt::doubt) | makes the one before it count | `EntryGone` | changes nothing |
//! | yes | `EntryGone` | `check`, then `doubt` | makes the one before it count | `EntryGone` | `EntryGone` |
//! | yes | `Failover` | `taken_over`, then `doubt` | makes the one before it count | `Failover` | `Failover` |
//!
//! [`settle`](Attempt::settle) and `taken_over` end `doubted`. While an attempt is missing, each
//! renewal looks for it, however young it is.

use std::time::Duration;

use lock_core::{Clock, Instant, LossReason, keep::poison::lock, validity::safe_until};

use super::{Attempt, Stage};

/// After this time the replicas have a write. It is what Redis takes for the greatest lag of a good
/// replica (`min-replicas-max-lag`), if it is not told another one.
const LAG: Duration = Duration::from_secs(10);

impl Attempt {
    /// Takes note of a sign that another server takes over: the last renewal may be lost, unless it
    /// is older than a period or than [`LAG`]. A younger lock that was never renewed has the time
    /// of one request to be confirmed. Answers to requests that were sent before do not count from
    /// now on.
    pub(crate) fn doubt(&self, now: Instant) {
        self.change(|stage| {
            if let Stage::Held { sent, validity, note } = stage {
                if now.since(*sent) >= self.period.min(LAG) {
                    note.earlier = Some(*sent);
                }
                let earlier = note.earlier.map(|earlier| safe_until(earlier, self.ttl));
                validity.shorten(earlier.unwrap_or(now + self.patience()));
                (note.doubted, note.counts_from) = (true, now);
            }
        });
    }

    /// Takes note that no other server takes over: all that was confirmed counts again.
    pub(crate) fn settle(&self) {
        self.change(|stage| {
            if let Stage::Held { sent, validity, note } = stage
                && std::mem::take(&mut note.doubted)
            {
                validity.extend(safe_until(*sent, self.ttl));
            }
        });
    }

    /// Takes note that another server has taken over, whose answers count.
    pub(crate) fn taken_over(&self, now: Instant) {
        *lock(&self.missing) = Some((now, LossReason::Failover));
        self.note(|hold| hold.doubted = false);
    }

    /// Whether its server may have lost it since a request has found it.
    pub(crate) fn is_missing(&self) -> bool {
        self.missing_since().is_some()
    }

    pub(super) fn missing_since(&self) -> Option<Instant> {
        lock(&self.missing).map(|(since, _)| since)
    }

    pub(super) fn found(&self) {
        *lock(&self.missing) = None;
    }

    /// Takes note that its server may have lost it, or its newest renewals: the next renewal looks
    /// for it. Answers to requests that were sent before do not count from now on.
    pub(crate) fn check(&self, now: Instant) {
        lock(&self.missing).get_or_insert((now, LossReason::EntryGone)).0 = now;
        self.note(|hold| hold.counts_from = now);
    }

    /// Ends the hold or the wait, and tells its caller why.
    pub(super) fn lose(&self, stage: &mut Stage) {
        stage.gone(self.loss(), self.ttl, Clock::Boot.now());
    }

    /// Returns why the server does not have it any more.
    pub(crate) fn loss(&self) -> LossReason {
        lock(&self.missing).map_or(LossReason::EntryGone, |(_, reason)| reason)
    }

    /// Whether it held the lock, and has lost it.
    pub(crate) fn is_lost(&self) -> bool {
        self.look(
            |stage| matches!(stage, Stage::Held { validity, .. } if validity.loss().is_some()),
        )
    }

    /// Whether one more confirmation makes the grant count while its server is doubted.
    pub(super) fn is_doubted_grant(&self) -> bool {
        self.look(|stage| {
            matches!(stage, Stage::Held { note, .. } if note.doubted && note.earlier.is_none())
        })
    }
}
