//! The member in use: its client, how long it may take to answer, and whether it still lives.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use etcd_client::Client;
use lock_core::{Clock, Instant, keep::poison::lock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a request may stay unanswered. Far above what a busy member takes, and short enough for
/// several tries within a TTL.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long connecting may take in all, for any number of members, if the caller sets nothing.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// A member that was left after nothing was heard of it for this long answers nothing any more.
pub(super) const SILENT: Duration = Duration::from_millis(500);

/// What the client of a member returns for a request.
pub(crate) type Answer<T> = Result<T, etcd_client::Error>;

/// The client of one member.
pub(crate) struct Member {
    /// Counts the changes of member; streams of an older one are given up.
    pub(crate) generation: u64,
    pub(crate) endpoint: Arc<str>,
    /// Its clients for keys, leases and so on share one connection.
    pub(crate) client: Client,
    /// Cancelled when the member is left because it failed: its requests are sent to another one.
    pub(crate) left: CancellationToken,
}

/// The limits of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For a round of connecting, over all members.
    connect: Duration,
    /// For one request.
    pub(crate) request: Duration,
}

impl Limits {
    pub(crate) fn new(connect: Option<Duration>, request: Option<Duration>) -> Self {
        let request = request.unwrap_or(ANSWER_LIMIT);
        Self { connect: connect.unwrap_or(CONNECT_LIMIT), request }
    }

    /// Returns how long one member of several may take to connect and to check the login, so that
    /// all of them are tried in time. A login is no request: the check of a password takes a server
    /// long, and longer under load.
    pub(crate) fn of_each(&self, members: usize) -> Duration {
        let members = u32::try_from(members.max(1)).unwrap_or(u32::MAX);
        self.connect / members
    }
}

/// When the member answered, and whether it lives.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_tried_in_time() {
        let seconds = Duration::from_secs;
        let limits = Limits::new(None, None);
        assert_eq!([1, 2, 4].map(|n| limits.of_each(n)), [seconds(4), seconds(2), seconds(1)]);
        let limits = Limits::new(Some(seconds(1)), Some(seconds(10)));
        assert_eq!(
            [0, 1, 2].map(|n| limits.of_each(n)),
            [1000, 1000, 500].map(Duration::from_millis)
        );
    }
}
