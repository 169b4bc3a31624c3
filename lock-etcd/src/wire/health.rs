//! The health of the member in use: when it answered, and whether it still lives.

use std::{sync::Mutex, time::Duration};

use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::sync::Notify;

/// A member that was left after nothing was heard of it for this long answers nothing any more.
pub(super) const SILENT: Duration = Duration::from_millis(500);

pub(crate) struct Health {
    /// Time of the last answer that only a member with a leader gives.
    heard: Mutex<Instant>,
    /// Same, or of the last answer to a keep-alive.
    lived: Mutex<Instant>,
    /// The first request without an answer since `heard`, if it is later.
    unanswered: Mutex<Instant>,
    /// Notified when a request is late: the answer to a keep-alive then shows whether the member
    /// lives.
    pub(crate) late: Notify,
}

impl Health {
    /// The health of a member that has just answered.
    pub(super) fn new() -> Self {
        let now = Clock::Boot.now();
        Self {
            heard: Mutex::new(now),
            lived: Mutex::new(now),
            unanswered: Mutex::default(),
            late: Notify::new(),
        }
    }

    /// Time of the last answer that only a member with a leader gives.
    pub(crate) fn heard(&self) -> Instant {
        *lock(&self.heard)
    }

    pub(super) fn lived(&self) -> Instant {
        *lock(&self.lived)
    }

    /// Notes an answer that only a member with a leader gives.
    pub(super) fn answered(&self) {
        *lock(&self.heard) = Clock::Boot.now();
        self.lives();
    }

    /// Notes that a keep-alive was answered.
    pub(crate) fn lives(&self) {
        *lock(&self.lived) = Clock::Boot.now();
    }

    /// Whether nothing was answered for a while.
    pub(super) fn is_silent(&self) -> bool {
        self.lived() + SILENT < Clock::Boot.now()
    }

    /// Whether the member has answered keep-alives alone for two more limits. A member whose disk
    /// hangs passes them on to the leader, and answers nothing else any more.
    pub(super) fn is_stuck(&self, limit: Duration) -> bool {
        let (now, heard) = (Clock::Boot.now(), self.heard());
        let mut since = lock(&self.unanswered);
        if *since <= heard {
            *since = now;
        }
        let stuck = *since + limit * 2 < now;
        if stuck {
            // The next member has as much time.
            *since = now;
        }
        stuck
    }
}
