//! One attempt, as this driver keeps it.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use lock_core::{
    Clock, Instant, Kind, LossReason, Request,
    keep::{
        attempt::{Progress, Stage},
        poison::lock,
    },
};
use tokio::sync::OwnedRwLockReadGuard;

use crate::{
    layout::row::Row,
    wire::{database::Call, turns::Rank},
};

/// An attempt that this client makes, waits with, or holds a lock by. While it waits, its token is
/// known: its place among the waiting attempts.
#[derive(Debug)]
pub(crate) struct Attempt {
    progress: Progress<(), u64>,
    /// Whether its request has a value: it leads an election.
    pub(crate) leads: bool,
    /// The kind with which it entered.
    pub(crate) kind: Kind,
    /// Its token as a waiter, if it has waited.
    queued: OnceLock<u64>,
    /// When the client found it granted, until its row has this time. An attempt that is granted
    /// at once records it in its first request. One that has waited learns of the grant by a look,
    /// which writes nothing. So a renewal records it, and no hand-over waits for that.
    undated: Mutex<Option<Instant>>,
}

/// Attempts that leave at the same time.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(super) attempts: Vec<Arc<Attempt>>,
    /// A request of theirs may still be under way.
    pub(super) doubtful: bool,
    /// `close` waits for this.
    pub(super) _busy: Option<OwnedRwLockReadGuard<()>>,
}

impl Deref for Attempt {
    type Target = Progress<(), u64>;

    fn deref(&self) -> &Self::Target {
        &self.progress
    }
}

impl Attempt {
    pub(super) fn new(
        request: &Request,
        period: Duration,
        caller: &lock_core::Attempt,
    ) -> Arc<Self> {
        Arc::new(Self {
            progress: Progress::new(caller.id(), request, period, ()),
            leads: request.value.is_some(),
            kind: request.kind,
            queued: OnceLock::new(),
            undated: Mutex::default(),
        })
    }

    /// A call about the lock that it holds.
    pub(crate) fn call(&self, op: &'static str, rank: Rank) -> Call<'static> {
        let deadline = Clock::Boot.now() + self.ttl / 2;
        Call { op, rank, patience: self.patience(), deadline, caller: None }
    }

    /// Notes that the attempt is in the queue.
    pub(crate) fn waits(&self, sent: Instant, token: u64) {
        self.change(|stage| {
            if let Stage::Asking(()) = stage {
                self.queued.get_or_init(|| token);
                *stage = Stage::Waiting { sent, note: token };
            }
        });
    }

    /// Its place among the waiting attempts, also after its wait; `None` if it has not waited.
    pub(crate) fn queued_token(&self) -> Option<u64> {
        self.queued.get().copied()
    }

    /// Its place among the waiting attempts; `None` if it does not wait.
    pub(crate) fn waiting_token(&self) -> Option<u64> {
        self.look(|stage| match stage {
            Stage::Waiting { note, .. } => Some(*note),
            _ => None,
        })
    }

    /// Notes the grant, which its row does not record: nothing is before the attempt any more that
    /// it would have to wait for.
    pub(crate) fn admitted(&self) {
        self.change(|stage| {
            if let Stage::Waiting { sent, note: token } = *stage {
                *lock(&self.undated) = Some(Clock::Boot.now());
                *stage = Stage::Granted { sent, token };
            }
        });
    }

    /// Ends a held lock that was last confirmed before another server took over: that one does not
    /// know it.
    pub(crate) fn lost_if_before(&self, moved: Instant) {
        self.look(|stage| match stage {
            Stage::Held { sent, validity, .. } if *sent <= moved => {
                validity.lose(LossReason::Failover);
            }
            _ => {}
        });
    }

    /// When it was granted, if its row does not record that.
    pub(crate) fn undated(&self) -> Option<Instant> {
        *lock(&self.undated)
    }

    /// Notes whether its row records when it was granted.
    pub(super) fn dated(&self, row: &Row) {
        if row.granted.is_some() {
            *lock(&self.undated) = None;
        }
    }
}
