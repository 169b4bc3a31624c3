//! The servers: their answers, and the end of the session.

use super::state::{Packet, State};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rule {
    /// Any answer proves its send time: the first version of the rule.
    Answers,
    /// A `sync` proves a request that was answered a tick before.
    Sync,
    /// A write proves a request that was answered a tick before.
    OneWrite,
    /// A write that is sent after the answer to such a write proves it: the rule of the crate's own
    /// code.
    Write,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum At {
    Follower,
    Leader,
}

/// The rule, and the faults of one run.
#[derive(Clone, Debug)]
pub struct Ensemble {
    pub rule: Rule,
    pub at: At,
    pub cuts: u8,
    /// Cuts that end. Packets that were sent meanwhile arrive then, in order.
    pub heals: u8,
    pub stalls: u8,
    /// The session's timeout, and how long a follower stays without a packet from its leader, in
    /// units.
    pub ttl: u8,
    pub sync_limit: u8,
    /// No run is longer.
    pub end: u8,
}

impl Ensemble {
    /// Whether the other end has left the leader, from which it got no packet.
    pub fn is_gone(&self, state: &State) -> bool {
        state.now >= state.heard_by_other + self.sync_limit
    }

    pub fn believes(&self, state: &State) -> bool {
        state.now < state.confirmed + self.ttl
    }

    /// Returns when the leader of the majority ends the session.
    pub fn end(&self, state: &State) -> u8 {
        state.successor.unwrap_or(state.counted) + self.ttl
    }

    pub fn arrive_at_other(&self, state: &mut State) -> Option<()> {
        let packet = state.to_other.packets.pop_front()?;
        state.heard_by_other = state.now;
        match packet {
            Packet::Ping => {
                let table = std::mem::take(&mut state.table);
                state.to_leader.packets.push_back(Packet::Table(table));
            }
            Packet::Ask => {
                let sent = state.asked.pop_front()?;
                state.answered(self.rule, sent, true);
            }
            Packet::Propose => state.to_leader.packets.push_back(Packet::Propose),
            Packet::Table(_) | Packet::Other => return None,
        }
        Some(())
    }

    pub fn arrive_at_leader(&self, state: &mut State) -> Option<()> {
        let packet = state.to_leader.packets.pop_front()?;
        state.heard_by_leader = state.now;
        match packet {
            Packet::Table(true) if !state.expired && self.at == At::Follower => {
                state.counted = state.now;
            }
            // A session that was ended gets no answer. The third server completes the majority.
            Packet::Ask if !state.expired => state.to_other.packets.push_back(Packet::Ask),
            Packet::Propose => {
                let sent = state.asked.pop_front()?;
                state.answered(self.rule, sent, true);
            }
            _ => {}
        }
        Some(())
    }

    /// The client's server gets a request of the session.
    pub fn touch(&self, state: &mut State) {
        match self.at {
            At::Follower => state.table = true,
            At::Leader => state.counted = state.now,
        }
    }

    /// Whether the client's server answers by itself.
    pub fn serves(&self, state: &State) -> bool {
        match self.at {
            At::Follower => state.follows() && !self.is_gone(state),
            At::Leader => state.leads && !state.stalled,
        }
    }

    pub fn ask(&self, state: &mut State) {
        self.touch(state);
        match (self.at, self.rule) {
            (At::Follower, _) => {
                state.asked.push_back((state.now, state.answers));
                state.to_leader.packets.push_back(Packet::Ask);
            }
            (At::Leader, Rule::OneWrite | Rule::Write) => {
                state.asked.push_back((state.now, state.answers));
                state.to_other.packets.push_back(Packet::Propose);
            }
            (At::Leader, _) => state.answered(self.rule, (state.now, state.answers), true),
        }
    }
}
