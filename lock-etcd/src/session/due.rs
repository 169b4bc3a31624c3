//! When the keep-alive of a session is due, and what its answer extends.

use std::time::Duration;

use lock_core::{Clock, Instant, deadline::safe_until};

use crate::{session::Session, wire::member::ANSWER_LIMIT};

/// The next step for the keep-alive of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    Ping,
    /// The keep-alive under way was not answered in time.
    Silent,
    Wait(Instant),
}

impl Session {
    /// Returns what to do now. A late keep-alive does not count as silence at once while the leader
    /// still answers other requests, the last one at `heard`: the leader confirms a keep-alive only
    /// after all that was committed before. The last third of the TTL is left for another member.
    pub(crate) fn next(&self, now: Instant, heard: Instant) -> Next {
        let state = self.state();
        if state.alone {
            return Next::Wait(safe_until(state.renewed, self.ttl));
        }
        if let Some(pinged) = state.pinged {
            let latest = (state.renewed + self.ttl * 2 / 3).max(pinged + self.answer_limit());
            let limit = (pinged.max(heard) + self.answer_limit()).min(latest);
            return if now >= limit { Next::Silent } else { Next::Wait(limit) };
        }
        let due = state.renewed + self.ttl / 3;
        if state.hurry || now >= due { Next::Ping } else { Next::Wait(due) }
    }

    /// How long a keep-alive may stay unanswered: several tries fit into the rest of the TTL.
    pub(crate) fn answer_limit(&self) -> Duration {
        (self.ttl / 4).min(ANSWER_LIMIT)
    }

    /// Returns until when its keep-alive may wait for a stream that another session has been
    /// opening since `began`.
    pub(crate) fn patience(&self, began: Instant) -> Instant {
        let state = self.state();
        match state.alone {
            true => Instant::NEVER,
            false => began.max(state.renewed + self.ttl / 3) + self.answer_limit(),
        }
    }

    /// Notes that a keep-alive is being sent.
    pub(crate) fn pinged(&self, at: Instant) {
        let mut state = self.state();
        state.pinged = Some(at);
        state.hurry = false;
    }

    /// Notes that the stream broke: the keep-alive under way gets no answer any more.
    pub(crate) fn unpinged(&self) {
        self.state().pinged = None;
    }

    /// When the keep-alive under way on the common stream was sent.
    pub(crate) fn under_way(&self) -> Option<Instant> {
        let state = self.state();
        state.pinged.filter(|_| !state.alone)
    }

    /// Switches keep-alives to streams of their own, or back to the common one.
    pub(crate) fn set_alone(&self, alone: bool) {
        self.state().alone = alone;
    }

    /// Confirms a keep-alive that was sent at `sent` on a stream of its own, as
    /// [`confirm`](Self::confirm) does.
    pub(crate) fn confirm_alone(&self, sent: Instant) -> Option<usize> {
        let mut state = self.state();
        (state.alone, state.pinged) = (false, Some(sent));
        drop(state);
        self.confirm()
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

    /// Asks for a keep-alive that is sent from now on.
    pub(crate) fn hurry(&self) {
        self.state().hurry = true;
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

    const TTL: Duration = Duration::from_secs(9);

    fn name() -> LockName {
        LockName::new("job").unwrap()
    }

    #[test]
    fn a_keep_alive_counts_from_when_it_was_sent() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now - Duration::from_secs(4));
        assert_eq!(session.next(now, now), Next::Ping);
        let validity = session.hold(&name(), Uuid::new_v4(), Instant::NEVER).unwrap();
        let sent = now - Duration::from_secs(1);
        session.pinged(sent);
        assert_eq!(session.next(now, sent - TTL), Next::Wait(sent + session.answer_limit()));
        assert_eq!(session.next(now + TTL, now), Next::Silent);
        assert!(session.confirm().is_some());
        assert_eq!(validity.until(), safe_until(sent, TTL));
        assert_eq!(session.next(now, now), Next::Wait(sent + TTL / 3));
    }

    #[test]
    fn a_keep_alive_is_given_up_after_two_thirds_of_the_ttl_whatever_else_is_answered() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now);
        let sent = now + TTL / 3;
        session.pinged(sent);
        let (late, silent) = (now + TTL * 2 / 3, sent + session.answer_limit());
        assert_eq!(session.next(silent, sent), Next::Silent);
        assert_eq!(session.next(silent, silent), Next::Wait(late));
        assert_eq!(session.next(late, late), Next::Silent);
    }

    #[test]
    fn a_short_session_does_not_wait_for_the_stream_of_a_long_one() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now);
        let due = now + TTL / 3;
        assert_eq!(session.patience(now), due + session.answer_limit());
        // It was due already.
        let began = due + Duration::from_secs(1);
        assert_eq!(session.patience(began), began + session.answer_limit());
        assert!(session.patience(began) < session.until());
    }

    #[test]
    fn a_denied_session_is_left_alone_until_a_keep_alive_of_its_own_is_confirmed() {
        let now = Clock::Boot.now();
        let session = Session::new(1, TTL, now - TTL / 2);
        session.pinged(now);
        assert_eq!(session.under_way(), Some(now));
        session.set_alone(true);
        assert_eq!(session.under_way(), None);
        assert_eq!(session.next(now, now), Next::Wait(session.until()));
        assert_eq!(session.confirm_alone(now), Some(0));
        assert_eq!(session.next(now, now), Next::Wait(now + TTL / 3));
    }

    #[test]
    fn a_late_confirmation_revives_nothing() {
        let session = Session::new(1, TTL, Clock::Boot.now() - TTL);
        assert!(session.hold(&name(), Uuid::new_v4(), Instant::NEVER).is_none());
        session.pinged(Clock::Boot.now());
        assert_eq!(session.confirm(), None);
        assert!(!session.is_live());
    }
}
