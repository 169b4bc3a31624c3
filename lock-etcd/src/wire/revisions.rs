//! Notices that the store has gone back to an earlier state.
//!
//! Revisions only rise. An answer of the whole cluster below what the client had seen before it
//! asked shows that an older backup was restored, or that confirmed writes were lost. Entries of
//! this client may then be gone, and others may be granted in their place, while keep-alives are
//! answered. No list of a queue would be new enough to tell. So the client forgets everything that
//! it knows of the store.
//!
//! A member by itself may lag, so its revision only raises a [doubt](super::reads::doubt).

use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use etcd_client::{GetResponse, LeaseTimeToLiveResponse, ResponseHeader, TxnResponse};
use lock_core::{keep::poison::lock, trace};

use crate::error::STORE;

/// The greatest revision that the client has seen, and how often the store has gone back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Mark {
    history: u64,
    revision: i64,
}

impl Mark {
    /// Whether a member that had this revision later on lags, or the store has gone back.
    pub(super) fn is_above(self, revision: i64) -> bool {
        revision < self.revision
    }
}

/// An answer that has the store's revision, or `None` if it has none.
pub(crate) trait Stamped {
    fn revision(&self) -> Option<i64> {
        None
    }
}

impl Stamped for GetResponse {
    fn revision(&self) -> Option<i64> {
        self.header().map(ResponseHeader::revision)
    }
}

impl Stamped for TxnResponse {
    fn revision(&self) -> Option<i64> {
        self.header().map(ResponseHeader::revision)
    }
}

/// A lease's answers are those of the member, not of the store.
impl Stamped for LeaseTimeToLiveResponse {}

/// A granted TTL.
impl Stamped for u64 {}

impl Stamped for () {}

#[derive(Default)]
pub(crate) struct Revisions {
    seen: Mutex<Mark>,
    owner: OnceLock<Owner>,
    /// Whether a doubt is being settled.
    doubted: AtomicBool,
}

struct Owner {
    /// A key that every login may read.
    key: String,
    went_back: Box<dyn Fn() + Send + Sync>,
}

impl Revisions {
    /// Sets what to do when the store has gone back, and a key that every login may read.
    pub(crate) fn set_owner(&self, key: String, went_back: impl Fn() + Send + Sync + 'static) {
        let went_back = Box::new(went_back);
        drop(self.owner.set(Owner { key, went_back }));
    }

    /// Returns what the client has seen until now.
    pub(crate) fn mark(&self) -> Mark {
        *lock(&self.seen)
    }

    /// Takes the revision of an answer of the whole cluster. Its request was sent after `mark` had
    /// been seen.
    pub(super) fn answered(&self, mark: Mark, revision: i64) {
        if self.goes_back(mark, revision) {
            trace::unexpected(STORE, &went_back(mark, revision));
            if let Some(owner) = self.owner.get() {
                (owner.went_back)();
            }
        }
    }

    /// Takes a revision that a member told on a stream that was opened after `mark` had been seen: the
    /// whole cluster has it. So a client that only renews knows how far the store was, too.
    pub(super) fn told(&self, mark: Mark, revision: i64) {
        let mut seen = lock(&self.seen);
        if seen.history == mark.history {
            seen.revision = seen.revision.max(revision);
        }
    }

    /// Whether this is the first answer that shows that the store has gone back.
    fn goes_back(&self, mark: Mark, revision: i64) -> bool {
        let mut seen = lock(&self.seen);
        if seen.history != mark.history {
            // Another answer has shown it meanwhile.
            return false;
        }
        let back = mark.is_above(revision);
        *seen = match back {
            true => Mark { history: seen.history + 1, revision },
            false => Mark { revision: seen.revision.max(revision), ..*seen },
        };
        back
    }

    /// Begins to settle a doubt, unless that is under way. Returns the key to read.
    pub(super) fn begin_doubt(&self) -> Option<&str> {
        let owner = self.owner.get()?;
        (!self.doubted.swap(true, Ordering::AcqRel)).then_some(&*owner.key)
    }

    pub(super) fn end_doubt(&self) {
        self.doubted.store(false, Ordering::Release);
    }
}

fn went_back(mark: Mark, revision: i64) -> String {
    format!(
        "the revision went back from {} to {revision}: an older backup was restored, or confirmed \
         writes were lost; all sessions end",
        mark.revision
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_others_overtook_is_not_below_what_was_seen() {
        let revisions = Revisions::default();
        let early = revisions.mark();
        assert!(!revisions.goes_back(early, 9));
        assert!(!revisions.goes_back(early, 5), "it was sent before 9 was seen");
        assert_eq!(revisions.mark().revision, 9);
    }

    #[test]
    fn a_member_tells_how_far_the_store_is_but_not_after_it_went_back() {
        let revisions = Revisions::default();
        let early = revisions.mark();
        revisions.told(early, 9);
        assert_eq!(revisions.mark().revision, 9);
        assert!(revisions.goes_back(revisions.mark(), 5));
        revisions.told(early, 9);
        assert_eq!(revisions.mark().revision, 5, "it was on its way");
    }

    #[test]
    fn the_first_answer_that_is_too_low_counts_once() {
        let revisions = Revisions::default();
        revisions.goes_back(revisions.mark(), 9);
        let mark = revisions.mark();
        assert!(mark.is_above(8) && !mark.is_above(9));
        assert!(revisions.goes_back(mark, 4));
        assert!(!revisions.goes_back(mark, 5) && !revisions.goes_back(mark, 9));
        assert_eq!(revisions.mark().revision, 4, "what came before does not count any more");
        assert!(revisions.goes_back(revisions.mark(), 3));
    }
}
