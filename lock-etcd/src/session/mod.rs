//! One etcd lease, and the locks and waiters that live by it.

pub(crate) mod attempt;
mod end;
pub(crate) mod janitor;
pub(crate) mod key;
pub(crate) mod pool;
mod renewal;
pub(crate) mod store;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use etcd_client::Compare;
use lock_core::{
    Clock, Instant, LockName, LossReason, Validity,
    keep::{leftovers::Leftovers, poison::lock},
    validity::safe_until,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    layout::{
        floor::Record,
        keys::{Keys, Slot},
    },
    session::key::Epoch,
    wire::{member::ANSWER_LIMIT, requests::stands},
};

/// The pauses before a refused removal is tried again: the first one, and the last one. Each pause
/// doubles the one before.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// One etcd lease. All locks of a client with the same TTL share it, so one keep-alive renews them
/// all.
///
/// It ends once and is never used again. It ends when etcd says that the lease is gone, when its
/// deadline passed without a confirmed keep-alive, or when the client closes.
pub(crate) struct Session {
    pub(crate) lease: i64,
    pub(crate) ttl: Duration,
    /// The revision at which its key was made. A raise of the token floor deletes the key.
    pub(crate) made: i64,
    /// The token floor at that revision. All its tokens count from it.
    pub(crate) floor: Record,
    state: Mutex<State>,
    /// Cancelled when the session has ended: all waiters learn it at once.
    pub(crate) ended: CancellationToken,
    /// Whether etcd itself said that the lease, and so every key of it, is gone.
    gone: AtomicBool,
    confirmed: Notify,
    /// Notified when a caller wants a keep-alive now.
    hurried: Arc<Notify>,
    pub(crate) epoch: Epoch,
    pub(crate) entries: Entries,
    /// The leftovers to remove. The janitor also wakes when the last attempt of a retired session
    /// is over.
    pub(crate) left: Leftovers<Leftover>,
    /// Whether no attempt begins in it any more: its key is gone, or etcd refused to remove a
    /// leftover.
    retired: AtomicBool,
    /// Number of attempts that live by it.
    users: AtomicUsize,
}

/// An attempt that lives by a session, until it is dropped.
pub(crate) struct User(Arc<Session>);

impl Drop for User {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 && self.0.is_retired() {
            self.0.left.ring();
        }
    }
}

struct State {
    /// When the last confirmed keep-alive was sent.
    renewed: Instant,
    /// When the keep-alive was sent that is not confirmed yet.
    pinged: Option<Instant>,
    /// By attempt.
    grants: HashMap<Uuid, Grant>,
    /// Why it has ended, if it has.
    loss: Option<LossReason>,
}

struct Grant {
    validity: Validity,
    /// The end of a fixed term; keep-alives of the session do not move it.
    cap: Instant,
}

impl Session {
    /// A session for a lease that a request sent at `sent` granted. Its key was made at the revision
    /// `made`, when the token floor was this.
    pub(crate) fn new(lease: i64, ttl: Duration, sent: Instant, made: i64, floor: Record) -> Self {
        Self {
            lease,
            ttl,
            made,
            floor,
            state: Mutex::new(State {
                renewed: sent,
                pinged: None,
                grants: HashMap::new(),
                loss: None,
            }),
            ended: CancellationToken::new(),
            gone: AtomicBool::new(false),
            confirmed: Notify::new(),
            hurried: Arc::default(),
            epoch: Epoch::new(made),
            entries: Entries::default(),
            left: Leftovers::new(PAUSES[0], PAUSES[1]),
            retired: AtomicBool::new(false),
            users: AtomicUsize::new(0),
        }
    }

    /// A comparison that is true as long as its key stands.
    pub(crate) fn stands(&self, layout: &Keys) -> Compare {
        stands(&layout.session(self.lease), self.made)
    }

    /// Registers an attempt.
    pub(crate) fn user(self: &Arc<Self>) -> User {
        self.users.fetch_add(1, Ordering::AcqRel);
        User(self.clone())
    }

    pub(crate) fn set_retired(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.users.load(Ordering::Acquire) == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns until when all holds of this session are safe.
    pub(crate) fn until(&self) -> Instant {
        safe_until(self.state().renewed, self.ttl)
    }

    pub(crate) fn is_live(&self) -> bool {
        !self.ended.is_cancelled() && Clock::Boot.now() < self.until()
    }

    /// Whether the lease is gone from etcd: etcd said so, or it was not renewed for so long that
    /// even a leader elected meanwhile has let it expire.
    pub(crate) fn is_over(&self) -> bool {
        self.is_gone() || Clock::Boot.now() > self.over_at()
    }

    /// Returns when even a leader elected meanwhile has let the lease expire.
    pub(crate) fn over_at(&self) -> Instant {
        self.state().renewed + self.ttl * 2 + ANSWER_LIMIT
    }

    /// Whether etcd said that the lease is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Notes that etcd confirmed the end of the lease after the session had ended.
    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Why it has ended, if it has.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.state().loss
    }

    /// Registers the grant of an attempt; `None` if the session has ended. `cap` is the end of a
    /// fixed term.
    pub(crate) fn grant(&self, name: &LockName, attempt: Uuid, cap: Instant) -> Option<Validity> {
        let mut state = self.state();
        let until = safe_until(state.renewed, self.ttl);
        // Under the lock: `end` cannot miss it.
        if self.ended.is_cancelled() || Clock::Boot.now() >= until {
            return None;
        }
        let validity = Validity::new(name, until.min(cap));
        state.grants.insert(attempt, Grant { validity: validity.clone(), cap });
        Some(validity)
    }

    /// Forgets a grant.
    pub(crate) fn unhold(&self, attempt: Uuid) {
        self.state().grants.remove(&attempt);
    }

    /// Moves the end of a fixed term that was renewed by hand.
    pub(crate) fn set_cap(&self, attempt: Uuid, cap: Instant) {
        let mut state = self.state();
        let until = safe_until(state.renewed, self.ttl);
        if let Some(hold) = state.grants.get_mut(&attempt) {
            hold.cap = hold.cap.max(cap);
            hold.validity.extend(until.min(hold.cap));
        }
    }

    /// Ends the session: all its locks are lost, and all its waiters fail. Returns whether this was
    /// the first end.
    pub(crate) fn end(&self, reason: LossReason) -> bool {
        let mut state = self.state();
        if self.ended.is_cancelled() {
            return false;
        }
        state.loss = Some(reason);
        for hold in state.grants.values() {
            hold.validity.lose(reason);
        }
        self.ended.cancel();
        true
    }
}

/// The possible entry of an attempt in the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stake {
    Nothing,
    /// Perhaps an entry: a request to make it was not answered. If it was sent in an epoch, it may
    /// still make the entry as long as that epoch lasts.
    Doubtful(Option<i64>),
    /// The entry with this create revision.
    Entry(i64),
}

impl Stake {
    /// Returns the epoch that must end so that nothing can make the entry any more.
    pub(crate) fn late(self) -> Option<i64> {
        match self {
            Self::Doubtful(epoch) => epoch,
            Self::Nothing | Self::Entry(_) => None,
        }
    }
}

/// An entry that an attempt may have left in the store.
#[derive(Clone)]
pub(crate) struct Leftover {
    pub(crate) key: Arc<str>,
    /// The attempt, which the entry's note names.
    pub(crate) attempt: Uuid,
    /// Reserves the key until the leftover is gone.
    pub(crate) _slot: Arc<Slot>,
    pub(crate) stake: Stake,
    /// Whether keys that belong to the entry may stand beside it.
    pub(crate) belongs: bool,
    /// To be removed after this one: as long as this one stands, an unanswered upgrade may make it.
    pub(crate) then: Option<Box<Self>>,
}

/// The entries of one session by their keys, with their create revisions as far as they are known.
///
/// The end of a lease takes all its keys with it. etcd refuses it if the login may not write one of
/// them any more. The others are then removed key by key, so that no waiter waits a TTL for them.
#[derive(Default)]
pub(crate) struct Entries(Mutex<HashMap<Arc<str>, Option<i64>>>);

impl Entries {
    /// Notes the possible entry of an attempt under its key.
    pub(crate) fn note(&self, key: &Arc<str>, stake: Stake) {
        match stake {
            Stake::Nothing => lock(&self.0).remove(key),
            Stake::Doubtful(_) => lock(&self.0).insert(key.clone(), None),
            Stake::Entry(revision) => lock(&self.0).insert(key.clone(), Some(revision)),
        };
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, Option<i64>)> {
        lock(&self.0).iter().map(|(key, revision)| (key.clone(), *revision)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(9);

    fn name() -> LockName {
        LockName::new("job").unwrap()
    }

    #[test]
    fn a_fixed_term_is_not_moved_by_keep_alives() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now, 0, Record::default());
        let cap = now + Duration::from_secs(2);
        let attempt = Uuid::new_v4();
        let validity = session.grant(&name(), attempt, cap).unwrap();
        session.pinged(now + Duration::from_millis(1));
        assert!(session.confirm().is_some());
        assert_eq!(validity.until(), cap);
        session.set_cap(attempt, cap + Duration::from_secs(1));
        assert_eq!(validity.until(), cap + Duration::from_secs(1));
    }

    #[test]
    fn the_end_loses_all_holds_once() {
        let session = Session::new(1, TTL, Clock::Boot.now(), 0, Record::default());
        let hold = |attempt| session.grant(&name(), attempt, Instant::NEVER);
        let attempt = Uuid::new_v4();
        let first = hold(attempt).unwrap();
        session.unhold(attempt);
        let second = hold(Uuid::new_v4()).unwrap();
        assert!(session.end(LossReason::SessionEnded));
        assert!(!session.end(LossReason::Expired));
        assert_eq!((first.loss(), second.loss()), (None, Some(LossReason::SessionEnded)));
        assert!(hold(Uuid::new_v4()).is_none());
    }
}
