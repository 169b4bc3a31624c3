//! The state of the two servers and of the client, and the packets on their way between them.

use std::{collections::VecDeque, time::Duration};

use lock_core::Instant;

use super::{ensemble::Rule, proof::Evidence};

pub const UNIT: Duration = Duration::from_secs(1);
/// Without the nanoseconds that keep events within a unit in order.
pub const TICK: Duration = Duration::from_nanos(2_000_000_000 - 100);

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Packet {
    Ping,
    /// A learner's answer to a ping: whether it got a request of the session since the last one.
    Table(bool),
    /// A question that needs the leader, or its answer.
    Ask,
    /// A write that the leader wants a majority to have, or its confirmation.
    Propose,
    /// Any other packet that a learner sends to its leader.
    Other,
}

/// Packets in one direction, and whether they arrive.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Link {
    pub cut: bool,
    pub packets: VecDeque<Packet>,
}

impl Link {
    pub fn arrives(&self) -> bool {
        !self.cut && !self.packets.is_empty()
    }

    /// Forgets packets that will never arrive.
    pub fn tidy(&mut self, heals: u8) {
        if self.cut && heals == 0 {
            self.packets.clear();
        }
    }
}

/// One state of the model. The other end of the leader's links is the client's follower, or the
/// majority that the leader needs if the client is at the leader.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    pub now: u8,
    pub stalled: bool,
    pub ping_due: bool,
    pub leads: bool,
    /// When the two ends last got a packet of each other.
    pub heard_by_leader: u8,
    pub heard_by_other: u8,
    pub to_other: Link,
    pub to_leader: Link,
    /// The other's table has the session.
    pub table: bool,
    /// From when the leader counts the session's timeout, and the next leader, if there is one.
    pub counted: u8,
    pub successor: Option<u8>,
    pub expired: bool,
    /// What the client knows: answered requests with their send and answer times, in the model's
    /// way or in the crate's; the requests without an answer; whether it has sent nothing in this
    /// unit.
    pub touches: Vec<(u8, u8)>,
    pub evidence: Evidence,
    pub asked: VecDeque<(u8, u8)>,
    /// How many answers there were in this unit. A request that is sent after an answer is sent
    /// later.
    pub answers: u8,
    pub quiet: bool,
    pub confirmed: u8,
    pub cuts: u8,
    pub heals: u8,
    pub stalls: u8,
}

impl State {
    pub fn at(time: u8) -> Instant {
        Instant::default() + UNIT * (1000 + u32::from(time))
    }

    pub fn follows(&self) -> bool {
        self.successor.is_none()
    }

    /// Records an answer to the client. By the rule it may prove something.
    pub fn answered(&mut self, rule: Rule, sent: (u8, u8), is_proof: bool) {
        self.answers += 1;
        let (order, sent) = (sent, sent.0);
        let proven = match (rule, is_proof) {
            (Rule::Answers, _) => Some(sent),
            (Rule::Write, _) => self.proven(order, is_proof),
            (_, false) => None,
            (_, true) => {
                let told = |(_, answered): &&(u8, u8)| answered + 2 <= sent;
                self.touches.iter().rev().find(told).map(|(touched, _)| *touched)
            }
        };
        self.confirmed = self.confirmed.max(proven.unwrap_or(0));
        if rule != Rule::Write {
            self.touches.push((sent, self.now));
            // Older ones prove less.
            let old = self.touches.iter().filter(|(_, answered)| answered + 2 <= self.now).count();
            self.touches.drain(..old.saturating_sub(1));
        }
    }

    /// Returns what the crate's own code proves by an answer.
    pub fn proven(&mut self, sent: (u8, u8), is_write: bool) -> Option<u8> {
        let order = |number| Duration::from_nanos(u64::from(number));
        let sent = Self::at(sent.0) + order(sent.1);
        let answered = Self::at(self.now) + order(self.answers);
        let proof = match is_write {
            true => self.evidence.committed(sent, answered),
            false => self.evidence.read(sent, answered),
        };
        let since = proof?;
        (0..=self.now).rev().find(|time| Self::at(*time) <= since)
    }
}
