//! The renewal of a session, as often as `lock_core::keep::renewal` says: one loop, with a stream of
//! keep-alives of its own.
//!
//! A keep-alive is sent a third of the TTL after the last confirmed one. Silence is a failure: etcd
//! answers each keep-alive, and if it does not, the stream and the connection below it are given
//! up. If etcd denies the keep-alives of one session, the others do not notice.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use etcd_client::LeaseKeepAliveResponse;
use lock_core::{Clock, Instant, Reach, keep::renewal::RENEWALS_PER_TTL, validity::safe_until};

use crate::{
    error::{Failure, FailureKind, STORE},
    session::Session,
    wire::{
        connection::{BACKOFF, Connection, Word},
        member::{ANSWER_LIMIT, Answer, Member},
        reads,
        revisions::Mark,
    },
};

/// How often a denied keep-alive is sent again in a TTL.
const DENIALS_PER_TTL: u32 = 12;

/// How many keep-alives may stay unanswered, one after the other, in a TTL.
const SILENCES_PER_TTL: u32 = 4;

/// Renews a session as long as it is there. Returns when etcd has said that the lease is gone.
pub(super) async fn renew(connection: &Arc<Connection>, session: &Weak<Session>) {
    let mut pause = BACKOFF;
    // A denied session is no outage of the others, and their renewals do not mend it.
    let alone = connection.reach.of_one_server();
    while let Some(due) = until_due(session).await {
        let (retry, limit) = (due.ttl / DENIALS_PER_TTL, due.answer_limit());
        let mut changes = connection.changes();
        let (member, seen) = (connection.member(), connection.revisions.mark());
        let failed = tokio::select! {
            failed = keep_alive(connection, &alone, session, due, &member, seen) => failed.err(),
            // On another member from now on.
            _ = changes.changed() => None,
        };
        if session.upgrade().is_none_or(|session| session.stood_still()) {
            pause = BACKOFF;
        }
        match failed {
            None => {}
            Some(failure) if failure.kind == FailureKind::LeaseGone => return,
            Some(failure) => {
                let is_denied = failure.kind == FailureKind::Denied;
                match is_denied && !failure.is_login_refused() {
                    true => alone.renewal_failed(STORE, &failure),
                    false => connection.reach.renewal_failed(STORE, &failure),
                }
                mend(connection, limit, member.generation, failure).await;
                match is_denied {
                    true => tokio::select! {
                        () = Clock::Boot.sleep(retry) => {}
                        // A new login may be allowed what the one before was not.
                        _ = changes.changed() => {}
                    },
                    false => pause.wait().await,
                }
            }
        }
    }
}

/// Sends keep-alives on one stream, until something fails. `seen`: what the client had seen before.
async fn keep_alive(
    connection: &Arc<Connection>,
    alone: &Reach,
    renewed: &Weak<Session>,
    mut session: Arc<Session>,
    member: &Member,
    seen: Mark,
) -> Result<Infallible, Failure> {
    let mut leases = member.client.lease_client();
    session.pinged(Clock::Boot.now());
    // The first keep-alive opens the stream.
    let opened = answered(connection, &session, leases.keep_alive(session.lease));
    let (mut keeper, mut replies) = Box::pin(opened).await?;
    connection.works(Word::Leader);
    loop {
        if let Some(locks) = session.confirm() {
            connection.reach.renewed(STORE, locks);
            alone.renewed(STORE, 0);
        }
        drop(session);
        session = tokio::select! {
            due = until_due(renewed) => due.ok_or_else(|| gone("the session has ended"))?,
            reply = replies.message() => {
                taken(reply.map_err(Failure::of_stream)?)?;
                return Err(Failure::senseless("an answer to no keep-alive"));
            }
        };
        session.pinged(Clock::Boot.now());
        keeper.keep_alive().await?;
        let reply = taken(answered(connection, &session, replies.message()).await?)?;
        reads::doubt(connection, seen, reply.header());
        connection.health.lives();
    }
}

/// Waits until a keep-alive is due, or wanted now. Returns `None` if the session is gone: as long as
/// no attempt lives by it, it may make room for another, so it is not held meanwhile.
async fn until_due(session: &Weak<Session>) -> Option<Arc<Session>> {
    let (due, hurried) =
        session.upgrade().map(|session| (session.due(), session.hurried.clone()))?;
    tokio::select! {
        () = Clock::Boot.sleep_until(due) => {}
        () = hurried.notified() => {}
    }
    session.upgrade()
}

/// Waits until the deadline of a session has passed, or it is gone.
pub(super) async fn expired(session: &Weak<Session>) {
    while let Some(until) = session.upgrade().map(|session| session.until()) {
        if Clock::Boot.now() >= until {
            return;
        }
        Clock::Boot.sleep_until(until).await;
    }
}

fn gone(why: &'static str) -> Failure {
    Failure::new(FailureKind::LeaseGone, why)
}

fn taken(reply: Option<LeaseKeepAliveResponse>) -> Result<LeaseKeepAliveResponse, Failure> {
    match reply {
        Some(reply) if reply.ttl() > 0 => Ok(reply),
        Some(_) => Err(gone("the lease is gone")),
        None => Err(Failure::new(FailureKind::Broken, "the keep-alives ended")),
    }
}

/// Waits for the answer to the keep-alive under way, as long as it may take.
async fn answered<T>(
    connection: &Connection,
    session: &Session,
    answer: impl Future<Output = Answer<T>>,
) -> Result<T, Failure> {
    let (mut answer, mut limit) = (pin!(answer), Instant::default());
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer.map_err(Failure::of_stream),
            () = Clock::Boot.sleep_until(limit) => {}
        }
        limit = session.silent_at(connection.health.heard());
        if Clock::Boot.now() >= limit {
            return Err(Failure::silent(session.answer_limit()));
        }
    }
}

/// Switches to another member or connection, and waits for it no longer than for an answer: a
/// member that is silent at the login must not use up a TTL in which the current one may answer
/// again.
async fn mend(connection: &Arc<Connection>, limit: Duration, generation: u64, failure: Failure) {
    let connection = connection.clone();
    let mending = tokio::spawn(async move { connection.failed(generation, &failure).await });
    // Beyond the limit it continues in the background.
    drop(Clock::Boot.timeout(limit, mending).await);
}

impl Session {
    /// Returns when the next keep-alive is due.
    fn due(&self) -> Instant {
        self.state().renewed + self.ttl / RENEWALS_PER_TTL
    }

    /// Returns until when the keep-alive under way may be answered. A late one does not count as
    /// silence at once while the leader still answers other requests, the last one at `heard`: the
    /// leader confirms a keep-alive only after all that was committed before. The last third of the
    /// TTL is left for another member.
    fn silent_at(&self, heard: Instant) -> Instant {
        let state = self.state();
        let pinged = state.pinged.unwrap_or(state.renewed);
        let latest = (state.renewed + self.ttl * 2 / 3).max(pinged + self.answer_limit());
        (pinged.max(heard) + self.answer_limit()).min(latest)
    }

    /// How long a keep-alive may stay unanswered: several tries fit into the rest of the TTL.
    fn answer_limit(&self) -> Duration {
        (self.ttl / SILENCES_PER_TTL).min(ANSWER_LIMIT)
    }

    /// Notes that a keep-alive is being sent.
    pub(crate) fn pinged(&self, at: Instant) {
        self.state().pinged = Some(at);
    }

    /// Confirms the keep-alive under way. Returns for how many locks, or `None` if it came too late.
    pub(crate) fn confirm(&self) -> Option<usize> {
        let mut state = self.state();
        let Some(sent) = state.pinged.take() else { return Some(0) };
        if Clock::Boot.now() >= safe_until(state.renewed, self.ttl) {
            // Holders know of the loss: a late confirmation must not revive what they gave up.
            return None;
        }
        state.renewed = state.renewed.max(sent);
        let until = safe_until(state.renewed, self.ttl);
        let mut locks = 0;
        for hold in state.grants.values().filter(|hold| !hold.validity.has_ended()) {
            hold.validity.extend(until.min(hold.cap));
            locks += 1;
        }
        drop(state);
        self.confirmed.notify_waiters();
        Some(locks)
    }

    /// Whether each keep-alive that was sent was answered: if it was not renewed in time, the process
    /// stood still.
    pub(crate) fn stood_still(&self) -> bool {
        self.state().pinged.is_none()
    }

    /// Asks for a keep-alive that is sent from now on.
    pub(crate) fn hurry(&self) {
        self.hurried.notify_one();
    }

    /// Waits until a keep-alive that was sent at `since` or later is confirmed. Returns when it was
    /// sent, or `None` if the session ended.
    pub(crate) async fn renewed_since(&self, since: Instant) -> Option<Instant> {
        loop {
            let confirmed = self.confirmed.notified();
            tokio::pin!(confirmed);
            // Registered before the check, so that a confirmation in between is not missed.
            confirmed.as_mut().enable();
            let renewed = self.state().renewed;
            if renewed >= since {
                return Some(renewed);
            }
            tokio::select! {
                () = confirmed => {}
                () = self.ended.cancelled() => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_core::LockName;
    use uuid::Uuid;

    use super::*;
    use crate::layout::floor::Record;

    const TTL: Duration = Duration::from_secs(9);

    fn name() -> LockName {
        LockName::new("job").unwrap()
    }

    #[test]
    fn a_keep_alive_counts_from_when_it_was_sent() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now - Duration::from_secs(4), 0, Record::default());
        assert!(session.due() <= now);
        let validity = session.grant(&name(), Uuid::new_v4(), Instant::NEVER).unwrap();
        let sent = now - Duration::from_secs(1);
        session.pinged(sent);
        assert_eq!(session.silent_at(sent - TTL), sent + session.answer_limit());
        assert!(session.confirm().is_some());
        assert_eq!(validity.until(), safe_until(sent, TTL));
        assert_eq!(session.due(), sent + TTL / 3);
    }

    #[test]
    fn a_keep_alive_is_given_up_after_two_thirds_of_the_ttl_whatever_else_is_answered() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now, 0, Record::default());
        let sent = now + TTL / 3;
        session.pinged(sent);
        let (late, silent) = (now + TTL * 2 / 3, sent + session.answer_limit());
        assert_eq!(session.silent_at(sent), silent);
        assert_eq!(session.silent_at(silent), late);
        assert_eq!(session.silent_at(late), late);
    }

    #[test]
    fn a_late_confirmation_revives_nothing() {
        let session = Session::new(1, TTL, Clock::Boot.now() - TTL, 0, Record::default());
        assert!(session.grant(&name(), Uuid::new_v4(), Instant::NEVER).is_none());
        session.pinged(Clock::Boot.now());
        assert_eq!(session.confirm(), None);
        assert!(!session.is_live());
    }

    #[test]
    fn a_process_stood_still_if_all_keep_alives_were_answered() {
        let session = Session::new(1, TTL, Clock::Boot.now(), 0, Record::default());
        assert!(session.stood_still());
        session.pinged(Clock::Boot.now());
        assert!(!session.stood_still());
        session.pinged(Clock::Boot.now());
        session.confirm();
        assert!(session.stood_still());
    }
}
