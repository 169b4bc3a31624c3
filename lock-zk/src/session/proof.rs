//! The answers that prove how long a session lives. Pure.
//!
//! Only the leader of an ensemble ends sessions. It counts from the last time it was *told* that a
//! session is alive, so an answer proves something only if it shows that the leader was told. What
//! the servers do (ZooKeeper 3.4 to 3.9):
//!
//! - A server notes the session of each request that it receives (`ZooKeeperServer.touch`). A
//!   standalone server and a leader count from there. A follower or observer only keeps a table of
//!   the sessions that it has heard of (`LearnerSessionTracker.touchTable`).
//! - The leader pings its learners twice per tick (`Leader.lead`). A learner sends the table with
//!   its answer, and begins a new one (`Learner.ping`). The leader counts from when it reads that
//!   (`LearnerHandler`, `PING`). A request that a learner forwards counts nothing.
//! - When a session is opened, or moves to another server, the leader is asked, and counts.
//! - A read is answered by the server that gets it, and proves nothing about the leader: a follower
//!   goes on answering for `syncLimit` ticks after it was cut off.
//! - `sync` is answered by any server that takes itself for the leader, without asking the others:
//!   a leader that was cut off goes on for up to `syncLimit` + 1 ticks, and for longer if its
//!   followers still reach it. By then the others may have another leader, and may have ended the
//!   session.
//! - A write is answered when a majority has it. So no later leader had begun to count when the
//!   write was sent: a new leader gives each session its whole timeout again. A write of a session
//!   that is being closed fails. But it does not move the end of the session on the leader.
//!
//! From this follows the rule for an ensemble. It takes an answered request that was sent at `s`
//! and answered at `a`; then a write that was sent at `a` plus a tick or later, and answered at
//! `b`; and then a write that was sent at `b` or later and is answered. These prove `s`. Between
//! the first two the leader has sent a ping, and the confirmation of the first write comes behind
//! it. So the server had answered the ping, with `s` in its table, before `b`. What it sends to the
//! leader arrives in order: the table before the second write. The second write shows that the
//! leader was the leader, and still had the session.
//!
//! So delays of packets do not matter. But the leader pings by its own clock: a leader that stalls
//! may confirm both writes before it pings again. The crate's documentation says what this leaves
//! open. `tests/model` tries the rule, and weaker ones, against all orders of events.

use std::{collections::VecDeque, time::Duration};

use lock_core::Instant;

/// The leader counted the session as alive at this instant, or later: the session lives until then
/// plus its timeout.
type Proof = Instant;

/// The evidence of a session's answers so far.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Evidence {
    tick: Duration,
    /// The server of this connection stands alone: no leader is over it.
    pub(crate) standalone: bool,
    /// Send and answer times, in order. All but the first were answered within a tick before the
    /// newest was sent.
    touches: VecDeque<(Instant, Instant)>,
    /// Answered writes: the time of the answer, and the send time of the touch that the write
    /// proves. It proves it once a write that is sent after this answer is answered. In order; only
    /// the first was answered before the newest write was sent.
    writes: VecDeque<(Instant, Instant)>,
}

/// At most this many touches are kept per tick, and as many writes.
const PER_TICK: u32 = 16;

impl Evidence {
    /// The evidence of a session that was opened by a handshake sent at `sent`. The leader knows
    /// the session then.
    pub(crate) fn of_handshake(tick: Duration, sent: Instant) -> (Self, Proof) {
        (Self { tick, standalone: false, touches: VecDeque::new(), writes: VecDeque::new() }, sent)
    }

    /// Records a read that was sent at `sent` and answered at `answered`.
    pub(crate) fn read(&mut self, sent: Instant, answered: Instant) -> Option<Proof> {
        if self.standalone {
            return Some(sent);
        }
        self.touched(sent, answered);
        None
    }

    /// Records a write that was sent at `sent`, and carried out or refused by the leader at
    /// `answered`.
    pub(crate) fn committed(&mut self, sent: Instant, answered: Instant) -> Option<Proof> {
        if self.standalone {
            return Some(sent);
        }
        let before = |(answered, _): &&(Instant, Instant)| *answered <= sent;
        let proven = self.writes.iter().rev().find(before).map(|(_, touched)| *touched);
        let older = |(_, answered): &&(Instant, Instant)| *answered + self.tick <= sent;
        if let Some((touched, _)) = self.touches.iter().rev().find(older).copied() {
            self.wrote(sent, answered, touched);
        }
        self.touched(sent, answered);
        proven
    }

    fn wrote(&mut self, sent: Instant, answered: Instant, touched: Instant) {
        if self.writes.back().is_none_or(|(last, _)| *last + self.tick / PER_TICK <= answered) {
            self.writes.push_back((answered, touched));
        }
        // Later writes are sent later: of the writes that were answered by now one is enough.
        while self.writes.get(1).is_some_and(|(second, _)| *second <= sent) {
            self.writes.pop_front();
        }
    }

    fn touched(&mut self, sent: Instant, answered: Instant) {
        if self.touches.back().is_none_or(|(last, _)| *last + self.tick / PER_TICK <= sent) {
            self.touches.push_back((sent, answered));
        }
        // Later writes are sent later: of the touches that are a tick older one is enough.
        while self.touches.get(1).is_some_and(|(_, second)| *second + self.tick <= sent) {
            self.touches.pop_front();
        }
    }
}

/// How many renewals there are per TTL, at least; up to twice as many if the TTL is short. More
/// than on other stores: what an answer proves is more than a tick old.
const LEAST_RENEWALS: u32 = 8;

/// Returns how long after a write the next one is due in a session that holds or waits: so that
/// what a write proves is not much older than a tick.
pub(crate) fn pace(ttl: Duration, tick: Duration) -> Duration {
    let (longest, lag) = (ttl / LEAST_RENEWALS, tick + tick / 10);
    if lag <= longest || longest.is_zero() {
        return longest;
    }
    // As many steps as fit into a tick and a bit: the write of so many steps ago is then old
    // enough.
    let steps = lag.as_nanos().div_ceil(longest.as_nanos());
    lag / u32::try_from(steps).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1000);

    fn at(millis: u64) -> Instant {
        Instant::default() + Duration::from_millis(1_000_000 + millis)
    }

    fn evidence() -> Evidence {
        Evidence::of_handshake(TICK, at(0)).0
    }

    #[test]
    fn a_handshake_proves_its_send_time() {
        assert_eq!(Evidence::of_handshake(TICK, at(7)).1, at(7));
    }

    #[test]
    fn reads_of_an_ensemble_prove_nothing_by_themselves() {
        let mut evidence = evidence();
        for time in (0..100_000).step_by(100) {
            assert_eq!(evidence.read(at(time), at(time + 1)), None);
        }
        assert!(evidence.touches.len() < 2 * PER_TICK as usize, "{}", evidence.touches.len());
    }

    #[test]
    fn a_second_write_proves_what_was_answered_a_tick_before_the_first() {
        let mut evidence = evidence();
        evidence.read(at(100), at(150));
        evidence.read(at(300), at(400));
        assert_eq!(evidence.committed(at(1149), at(1160)), None);
        assert_eq!(evidence.committed(at(1170), at(1300)), None);
        // Sent before the first one was answered.
        assert_eq!(evidence.committed(at(1299), at(1310)), None);
        assert_eq!(evidence.committed(at(1400), at(1410)), Some(at(100)));
        assert_eq!(evidence.committed(at(1500), at(1510)), Some(at(300)));
    }

    #[test]
    fn late_answers_prove_no_more_than_early_ones() {
        let mut evidence = evidence();
        evidence.read(at(0), at(2000));
        assert_eq!(evidence.committed(at(2500), at(9000)), None);
        assert_eq!(evidence.committed(at(3000), at(9001)), None);
        assert_eq!(evidence.committed(at(8000), at(9002)), None);
        assert_eq!(evidence.committed(at(9001), at(9500)), Some(at(0)));
    }

    #[test]
    fn a_busy_session_remembers_little_and_lags_little() {
        let mut evidence = evidence();
        for time in 0..5000 {
            let proof = evidence.committed(at(time), at(time + 5));
            if let Some(since) = proof {
                assert!(since <= at(time - 1010) && since + TICK * 2 > at(time), "at {time}");
            } else {
                assert!(time < 1100, "at {time}");
            }
        }
        let remembered = evidence.touches.len() + evidence.writes.len();
        assert!(remembered < 3 * PER_TICK as usize, "{remembered}");
    }

    #[test]
    fn every_answer_of_a_standalone_server_proves_its_send_time() {
        let mut evidence = evidence();
        evidence.standalone = true;
        assert_eq!(evidence.read(at(3), at(4)), Some(at(3)));
        assert_eq!(evidence.committed(at(5), at(6)), Some(at(5)));
        evidence.standalone = false;
        assert_eq!(evidence.read(at(7), at(8)), None);
    }

    #[test]
    fn the_pace_leaves_a_quarter_of_each_ttl() {
        for ttl in [3, 4, 6, 8, 10, 20, 100].map(|ticks| TICK * ticks) {
            let pace = pace(ttl, TICK);
            assert!(pace >= ttl / 17 && pace <= ttl / 8, "{ttl:?}: {pace:?}");
            // How old the last write's proof is when the write is sent.
            let lag = (1..).map(|steps| pace * steps).find(|lag| *lag > TICK).unwrap();
            let least = ttl - lag - pace * 2;
            assert!(least >= ttl / 4, "{ttl:?}: {least:?}");
        }
    }
}
