//! How long a session lives, as far as answers have proven it. When it is given up stands in
//! `session/end`.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use lock_core::{Clock, Instant, keep::poison::lock, validity::safe_until};

use super::proof::{self, Evidence};

/// A proof of life is more than a tick old. So beside an ensemble shorter sessions leave no time to
/// find another server.
pub(crate) const LEAST_TICKS: u32 = 3;
/// How long a request may be on its way from one server to the leader, in ticks: the leader leaves
/// a server that it has not heard for `syncLimit` ticks, which is 5 in ZooKeeper's own example.
const LATE_TICKS: u32 = 20;

/// The proven life of one session. Requests hold it without holding the session.
#[derive(Debug)]
pub(crate) struct Deadline {
    pub(crate) ttl: Duration,
    tick: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    evidence: Evidence,
    /// The newest proof: the leader counted the session as alive then, or later.
    pub(super) proven: Instant,
    /// When the newest answered request was sent.
    pub(super) heard: Instant,
    /// When the newest answered write was sent.
    pub(super) wrote: Instant,
    /// Since when there are attempts, which need proofs.
    pub(super) used: Option<Instant>,
}

impl Deadline {
    /// The life of a session whose handshake began at `sent`. The servers have this tick.
    pub(crate) fn new(ttl: Duration, tick: Duration, sent: Instant) -> Self {
        let (evidence, proven) = Evidence::of_handshake(tick, sent);
        let state = State { evidence, proven, heard: sent, wrote: sent, used: None };
        Self { ttl, tick, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Records whether the server of this connection stands alone.
    pub(crate) fn set_standalone(&self, standalone: bool) {
        self.state().evidence.standalone = standalone;
    }

    pub(crate) fn is_standalone(&self) -> bool {
        self.state().evidence.standalone
    }

    /// Whether it is too short for an ensemble, and its server is not known to stand alone.
    pub(crate) fn must_be_alone(&self) -> bool {
        self.ttl < self.tick * LEAST_TICKS && !self.is_standalone()
    }

    /// Records whether there are attempts, which need proofs.
    pub(crate) fn set_used(&self, used: bool) {
        self.state().used = used.then(|| Clock::Boot.now());
    }

    /// Returns when the next renewal is due, and whether it must be a write: only a write proves
    /// something beside an ensemble.
    pub(crate) fn due(&self) -> (Instant, bool) {
        let state = self.state();
        match state.used.is_some() && !state.evidence.standalone {
            true => (state.wrote + self.pace(), true),
            false => (state.heard + self.pace(), false),
        }
    }

    /// The time between two renewals.
    pub(crate) fn pace(&self) -> Duration {
        proof::pace(self.ttl, self.tick)
    }

    /// How long a request that was sent may still be carried out, also without an answer.
    pub(crate) fn lateness(&self) -> Duration {
        self.tick * LATE_TICKS
    }

    /// Until when the holders of this session may work.
    pub(crate) fn safe_until(&self) -> Instant {
        safe_until(self.state().proven, self.ttl)
    }

    /// Until when a new holder may work, if at least so much is left.
    pub(crate) fn of_grant(&self, least: Duration) -> Option<Instant> {
        Some(self.safe_until()).filter(|until| Clock::Boot.now() + least <= *until)
    }

    /// Counts a request that was sent at `sent` and is answered now.
    pub(crate) fn count(&self, sent: Instant, writes: bool) {
        let mut state = self.state();
        let proof = match writes {
            true => {
                state.wrote = state.wrote.max(sent);
                state.evidence.committed(sent, Clock::Boot.now())
            }
            false => state.evidence.read(sent, Clock::Boot.now()),
        };
        state.heard = state.heard.max(sent);
        // Nothing else moves the deadline.
        state.proven = state.proven.max(proof.unwrap_or_default());
    }
}
