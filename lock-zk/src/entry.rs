//! One attempt's entry in a queue, as this process knows it.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use lock_core::{FencingToken, LossReason, Term, Validity};
use tokio::sync::Notify;
use uuid::Uuid;

/// One attempt's entry. The session keeps it from before its node is asked for until the node's
/// deletion is confirmed, so that whoever stands behind it in the same process need not ask the
/// server how it fares.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) attempt: Uuid,
    pub(crate) term: Term,
    asked: AtomicBool,
    node: OnceLock<Node>,
    validity: OnceLock<Validity>,
    state: AtomicU8,
    changed: Notify,
}

/// What the server created for the attempt.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) sequence: i32,
    pub(crate) token: FencingToken,
}

impl Node {
    /// The last component of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }
}

const WAITING: u8 = 0;
const HELD: u8 = 1;
const PASSED: u8 = 2;
const GONE: u8 = 3;

/// How an entry ended, for whoever stands right behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// It held the lock and gave it up. Everything before it was gone already, and lower sequences
    /// never appear later: the one right behind it holds the lock now, whether or not the node's
    /// deletion has reached the server yet.
    Passed,
    /// Its node is gone for another reason: whoever is behind it must look.
    Gone,
}

impl Entry {
    pub(crate) fn new(attempt: Uuid, term: Term) -> Self {
        Self {
            attempt,
            term,
            asked: AtomicBool::new(false),
            node: OnceLock::new(),
            validity: OnceLock::new(),
            state: AtomicU8::new(WAITING),
            changed: Notify::new(),
        }
    }

    /// Remembers that a node may exist from now on.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether a node may exist.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The node, once its creation is confirmed.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Writes down the confirmed node; the first one counts.
    pub(crate) fn created(&self, node: Node) -> &Node {
        self.node.get_or_init(|| node)
    }

    /// The grant's validity, once it is granted.
    pub(crate) fn validity(&self) -> Option<&Validity> {
        self.validity.get()
    }

    /// Turns the waiting entry into the holder; `false` if it is gone.
    pub(crate) fn hold(&self, validity: Validity) -> bool {
        // An attempt is granted once; setting it twice cannot happen.
        let _ = self.validity.set(validity);
        self.state.compare_exchange(WAITING, HELD, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The holder gives the lock up.
    pub(crate) fn pass(&self) {
        if self.state.compare_exchange(HELD, PASSED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.changed.notify_waiters();
        }
    }

    /// The node is gone, and nobody gave the lock up. A holder is told.
    pub(crate) fn gone(&self) {
        let end = |state| (state == WAITING || state == HELD).then_some(GONE);
        let Ok(before) = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, end) else {
            return;
        };
        if before == HELD
            && let Some(validity) = self.validity.get()
        {
            validity.lose(LossReason::EntryGone);
        }
        self.changed.notify_waiters();
    }

    /// Whether the holder gave the lock up, or the node is gone.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), PASSED | GONE)
    }

    /// Waits until the entry ended.
    pub(crate) async fn ended(&self) -> Ending {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that an end in between is not missed.
            changed.as_mut().enable();
            match self.state.load(Ordering::Acquire) {
                PASSED => return Ending::Passed,
                GONE => return Ending::Gone,
                _ => changed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Instant, LockName};

    use super::*;

    fn held() -> (Entry, Validity) {
        let entry = Entry::new(Uuid::new_v4(), Term::Renewed);
        let validity = Validity::new(&LockName::new("a").unwrap(), Instant::NEVER);
        assert!(entry.hold(validity.clone()));
        (entry, validity)
    }

    #[tokio::test]
    async fn a_release_passes_the_lock_on_once() {
        let (entry, validity) = held();
        entry.pass();
        entry.gone();
        assert_eq!(entry.ended().await, Ending::Passed);
        assert_eq!(validity.loss(), None);
    }

    #[tokio::test]
    async fn a_deleted_holder_is_told_and_passes_nothing_on() {
        let (entry, validity) = held();
        entry.gone();
        entry.pass();
        assert_eq!(entry.ended().await, Ending::Gone);
        assert_eq!(validity.loss(), Some(LossReason::EntryGone));
    }

    #[test]
    fn a_deleted_waiter_is_never_granted() {
        let entry = Entry::new(Uuid::new_v4(), Term::Renewed);
        entry.gone();
        assert!(!entry.hold(Validity::new(&LockName::new("a").unwrap(), Instant::NEVER)));
    }
}
