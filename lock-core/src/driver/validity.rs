//! Until when a holder may work, and how a grant ends.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::SetOnce;

use crate::{
    Instant, LockName, LossReason, Request,
    driver::{look::Look, meter, trace},
};

/// Until when a holder may work, if the request of its grant or renewal was sent at `sent`.
pub fn safe_until(sent: Instant, ttl: Duration) -> Instant {
    sent + ttl.saturating_sub(margin(ttl))
}

/// How long before the earliest next grant a holder is notified: 50 ms or a twentieth of the TTL,
/// whichever is longer. Redis has no slack of its own (measured: 1 ms between a holder's deadline
/// and the next grant), so the margin is all the time to stop.
pub fn margin(ttl: Duration) -> Duration {
    (ttl / 20).max(Duration::from_millis(50))
}

/// How little of a TTL is left when its renewals fail: three eighths of it, less the margin. The
/// first renewal comes up to half of a TTL after a grant, the others every third, or more often.
/// ZooKeeper grants with a third, and what an ensemble proves is up to 0.6 of a TTL old.
pub fn at_risk(ttl: Duration) -> Duration {
    (ttl * 3 / 8).saturating_sub(margin(ttl))
}

/// The state of one grant, shared by the driver that renews it and the guard that watches it.
///
/// It holds until an instant that renewals move forward, and it ends once: lost, or released. A
/// driver moves it with [`extend`](Self::extend), [`shorten`](Self::shorten) and
/// [`lose`](Self::lose); lock-core does everything else. One small allocation, no task and no
/// channel: a process may hold 10,000 locks.
#[derive(Clone, Debug)]
pub struct Validity(Arc<State>);

#[derive(Debug)]
struct State {
    name: LockName,
    until: AtomicU64,
    end: SetOnce<Why>,
    watcher: OnceLock<Weak<dyn Watcher>>,
    look: Look,
    holding: meter::Holding,
}

/// It watches the end of a grant, and must know of an earlier one.
pub(crate) trait Watcher: Send + Sync {
    /// The grant ends earlier than it did.
    fn shortened(self: Arc<Self>);
}

/// Why a grant ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    Lost(LossReason),
    Released,
}

impl Why {
    /// The reason of a loss. A close is a release, and told as one.
    fn loss(self) -> Option<LossReason> {
        match self {
            Self::Lost(reason) if reason != LossReason::Closed => Some(reason),
            _ => None,
        }
    }
}

impl Validity {
    /// A grant of `name` that holds until `until` (see [`safe_until`])
    /// unless it is extended.
    pub fn new(name: &LockName, until: Instant) -> Self {
        Self(Arc::new(State {
            name: name.clone(),
            until: AtomicU64::new(until.nanos()),
            end: SetOnce::new(),
            watcher: OnceLock::new(),
            look: Look::default(),
            holding: Default::default(),
        }))
    }

    /// Moves the end forward; an earlier instant than the present one changes nothing.
    pub fn extend(&self, until: Instant) {
        self.0.until.fetch_max(until.nanos(), Ordering::AcqRel);
    }

    /// Moves the end back, since what a server had confirmed may not hold any more; a later instant
    /// than the present one changes nothing. [`extend`](Self::extend) works again after it.
    pub fn shorten(&self, until: Instant) {
        if self.0.until.fetch_min(until.nanos(), Ordering::AcqRel) <= until.nanos() {
            return;
        }
        if let Some(watcher) = self.0.watcher.get().and_then(Weak::upgrade) {
            watcher.shortened();
        }
    }

    /// Sets who must know when the grant ends earlier; the first one counts.
    pub(crate) fn watch(&self, watcher: Weak<dyn Watcher>) {
        // A second one would be a second guard of one grant, which there is not.
        let _ = self.0.watcher.set(watcher);
    }

    /// Ends the grant as lost. Only the first end counts: this does nothing after a release.
    /// Returns whether it was the first end.
    pub fn lose(&self, reason: LossReason) -> bool {
        self.end(Why::Lost(reason))
    }

    /// Ends the grant. Returns whether it was the first end.
    pub(crate) fn end(&self, why: Why) -> bool {
        let first = self.0.end.set(why).is_ok();
        if first {
            if let Some(reason) = why.loss() {
                trace::lost(&self.0.name, reason);
            }
            self.0.holding.end(why.loss());
        }
        first
    }

    /// Counts the grant as held, until it ends.
    pub(crate) fn meter(&self, store: &'static str, request: &Request) {
        self.0.holding.begin(store, request);
        // The driver may have lost it already.
        if let Some(why) = self.0.end.get() {
            self.0.holding.end(why.loss());
        }
    }

    /// When to look whether the guard outlives the loss.
    pub(crate) fn look(&self) -> &Look {
        &self.0.look
    }

    /// When the grant ends unless it is extended.
    pub fn until(&self) -> Instant {
        Instant::from_nanos(self.0.until.load(Ordering::Acquire))
    }

    /// Whether the grant ended, by loss or by release. A driver stops renewing it then.
    pub fn has_ended(&self) -> bool {
        self.0.end.initialized()
    }

    /// How the grant was lost, if it was.
    pub fn loss(&self) -> Option<LossReason> {
        match self.0.end.get() {
            Some(Why::Lost(reason)) => Some(*reason),
            _ => None,
        }
    }

    /// Waits until the grant is lost; for ever if it is released first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub async fn lost(&self) -> LossReason {
        match self.0.end.wait().await {
            Why::Lost(reason) => *reason,
            Why::Released => std::future::pending().await,
        }
    }
}
