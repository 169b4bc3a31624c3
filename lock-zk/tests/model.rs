//! The rule of `proof.rs`, and weaker ones, against all orders of events.
//!
//! Three servers, of which one leads, and one client, whose server is the leader or one follower. The
//! unit of time is half a tick: the leader pings once per unit, at any moment of it, and what is sent
//! over an open link to a running server arrives within the unit, in order. Links are cut in one
//! direction or both, and the leader stalls, at any moment.

#[allow(dead_code, unreachable_pub, reason = "the model uses its part")]
#[path = "../src/proof.rs"]
mod proof;

use std::{collections::VecDeque, time::Duration};

use lock_core::Instant;
use proof::Evidence;
use stateright::{Checker, Model, Property};

const UNIT: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_secs(2);
/// The session's timeout, and how long a follower stays without hearing from its leader, in units.
const TTL: u8 = 4;
const SYNC_LIMIT: u8 = 3;
/// No run is longer.
const END: u8 = 9;
const OVERLAP: &str = "nobody is granted a lock that somebody believes in";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rule {
    /// Any answer proves its send time: the first edition.
    Answers,
    /// A `sync` proves what was answered a tick before.
    Sync,
    /// A write proves what was answered a tick before.
    Write,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Follower,
    Leader,
}

/// What may go wrong in one run.
#[derive(Clone, Debug)]
struct Ensemble {
    rule: Rule,
    at: At,
    cuts: u8,
    stalls: u8,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Packet {
    Ping,
    /// A learner's answer to a ping: whether it heard of the session since the last one.
    Table(bool),
    /// A question that needs the leader, or its answer.
    Ask,
    /// A write that the leader wants a majority to have, or its confirmation.
    Propose,
    /// Whatever else a learner sends to its leader.
    Other,
}

/// Packets in one direction, and whether they arrive.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Link {
    cut: bool,
    packets: VecDeque<Packet>,
}

impl Link {
    fn send(&mut self, packet: Packet) {
        if !self.cut {
            self.packets.push_back(packet);
        }
    }

    fn cut(&mut self) {
        self.cut = true;
        self.packets.clear();
    }
}

/// The other end of the leader's links is the client's follower, or the majority that the leader
/// needs if the client is at the leader.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct State {
    now: u8,
    stalled: bool,
    ping_due: bool,
    leads: bool,
    /// When the two last heard of each other.
    heard_by_leader: u8,
    heard_by_other: u8,
    to_other: Link,
    to_leader: Link,
    /// The other's table has the session.
    table: bool,
    /// From when the leader counts the session's timeout; the next leader, if there is one.
    counted: u8,
    successor: Option<u8>,
    expired: bool,
    /// What the client knows: answered requests and when they were sent and answered; the request
    /// without an answer; whether it has sent something in this unit.
    touches: Vec<(u8, u8)>,
    asked: Option<u8>,
    quiet: bool,
    confirmed: u8,
    lost: bool,
    cuts: u8,
    stalls: u8,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Action {
    Time,
    Ping,
    ArriveAtOther,
    ArriveAtLeader,
    Chatter,
    Read,
    Ask,
    Stall,
    Resume,
    CutToOther,
    CutToLeader,
    CutBoth,
    Elect,
    StepDown,
    Expire,
}

impl State {
    fn at(time: u8) -> Instant {
        Instant::default() + UNIT * (1000 + u32::from(time))
    }

    fn follows(&self) -> bool {
        self.successor.is_none()
    }

    /// The client is answered: by the rule this may prove something.
    fn answered(&mut self, rule: Rule, sent: u8, is_proof: bool) {
        if self.now >= self.confirmed + TTL {
            self.lost = true;
        }
        let proven = match (rule, is_proof) {
            (Rule::Answers, _) => Some(sent),
            (_, false) => None,
            (_, true) => self.proven(sent),
        };
        if let Some(since) = proven.filter(|_| !self.lost) {
            self.confirmed = self.confirmed.max(since);
        }
        self.touches.push((sent, self.now));
        // The others prove less.
        let old = self.touches.iter().filter(|(_, answered)| answered + 2 <= self.now).count();
        self.touches.drain(..old.saturating_sub(1));
    }

    /// What the crate's own code makes of it.
    fn proven(&self, sent: u8) -> Option<u8> {
        let (mut evidence, _) = Evidence::of_handshake(TICK, Self::at(0));
        for (sent, answered) in &self.touches {
            evidence.read(Self::at(*sent), Self::at(*answered));
        }
        let since = evidence.committed(Self::at(sent), Self::at(self.now))?.since();
        (0..=self.now).find(|time| Self::at(*time) == since)
    }

    fn believes(&self) -> bool {
        !self.lost && self.now < self.confirmed + TTL
    }

    /// When whoever leads the majority ends the session.
    fn end(&self) -> u8 {
        self.successor.unwrap_or(self.counted) + TTL
    }
}

impl Ensemble {
    fn arrive_at_other(&self, state: &mut State) -> Option<()> {
        let packet = state.to_other.packets.pop_front()?;
        state.heard_by_other = state.now;
        match packet {
            Packet::Ping => {
                let table = std::mem::take(&mut state.table);
                state.to_leader.send(Packet::Table(table));
            }
            Packet::Ask => {
                let sent = state.asked.take()?;
                state.answered(self.rule, sent, true);
            }
            Packet::Propose => state.to_leader.send(Packet::Propose),
            Packet::Table(_) | Packet::Other => return None,
        }
        Some(())
    }

    fn arrive_at_leader(&self, state: &mut State) -> Option<()> {
        let packet = state.to_leader.packets.pop_front()?;
        state.heard_by_leader = state.now;
        match packet {
            Packet::Table(true) if !state.expired && self.at == At::Follower => {
                state.counted = state.now;
            }
            // A session that was ended gets no answer. The third server is there for the write.
            Packet::Ask if !state.expired => state.to_other.send(Packet::Ask),
            Packet::Propose => {
                let sent = state.asked.take()?;
                state.answered(self.rule, sent, true);
            }
            _ => {}
        }
        Some(())
    }

    /// The client's server has a request of it.
    fn touch(&self, state: &mut State) {
        match self.at {
            At::Follower => state.table = true,
            At::Leader => state.counted = state.now,
        }
    }

    /// Whether the client's server answers by itself.
    fn serves(&self, state: &State) -> bool {
        match self.at {
            At::Follower => state.follows() && state.now < state.heard_by_other + SYNC_LIMIT,
            At::Leader => state.leads && !state.stalled,
        }
    }

    fn ask(&self, state: &mut State) {
        self.touch(state);
        match (self.at, self.rule) {
            (At::Follower, _) => {
                state.asked = Some(state.now);
                state.to_leader.send(Packet::Ask);
            }
            (At::Leader, Rule::Write) => {
                state.asked = Some(state.now);
                state.to_other.send(Packet::Propose);
            }
            (At::Leader, _) => state.answered(self.rule, state.now, true),
        }
    }
}

impl Model for Ensemble {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            stalled: false,
            ping_due: false,
            leads: true,
            heard_by_leader: 0,
            heard_by_other: 0,
            to_other: Link::default(),
            to_leader: Link::default(),
            table: false,
            counted: 0,
            successor: None,
            expired: false,
            touches: Vec::new(),
            asked: None,
            quiet: true,
            confirmed: 0,
            lost: false,
            cuts: self.cuts,
            stalls: self.stalls,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Nothing that comes later can be an overlap.
        if !state.believes() || state.now >= END {
            return;
        }
        let runs = state.leads && !state.stalled;
        let arrives = !state.to_other.packets.is_empty();
        let heard = runs && !state.to_leader.packets.is_empty();
        let steps_down = runs && state.now >= state.heard_by_leader + SYNC_LIMIT;
        let must_step_down = steps_down && state.now >= state.heard_by_leader + SYNC_LIMIT + 2;
        let mut when = |may: bool, action| may.then(|| actions.push(action));
        when(!arrives && !heard && !(runs && state.ping_due) && !must_step_down, Action::Time);
        when(runs && state.ping_due, Action::Ping);
        when(arrives, Action::ArriveAtOther);
        when(heard, Action::ArriveAtLeader);
        let hears = state.heard_by_leader < state.now && state.to_leader.packets.is_empty();
        let chats = self.at == At::Leader && state.follows() && hears;
        when(chats, Action::Chatter);
        when(self.serves(state) && state.quiet, Action::Read);
        let asks = self.rule != Rule::Answers && state.asked.is_none();
        when(self.serves(state) && state.quiet && asks, Action::Ask);
        when(runs && state.stalls > 0, Action::Stall);
        when(state.stalled, Action::Resume);
        if state.cuts > 0 {
            when(!state.to_other.cut, Action::CutToOther);
            when(!state.to_leader.cut, Action::CutToLeader);
            when(!state.to_other.cut && !state.to_leader.cut, Action::CutBoth);
        }
        let gone = state.now >= state.heard_by_other + SYNC_LIMIT;
        when(self.at == At::Leader && state.follows() && gone, Action::Elect);
        when(self.at == At::Leader && steps_down, Action::StepDown);
        let ends = !state.expired && state.now >= state.end();
        when(ends && (runs || state.successor.is_some()), Action::Expire);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Time => {
                state.now += 1;
                (state.ping_due, state.quiet) = (true, true);
            }
            Action::Ping => {
                state.ping_due = false;
                state.to_other.send(Packet::Ping);
            }
            Action::ArriveAtOther => self.arrive_at_other(&mut state)?,
            Action::ArriveAtLeader => self.arrive_at_leader(&mut state)?,
            Action::Chatter => state.to_leader.send(Packet::Other),
            Action::Read => {
                state.quiet = false;
                self.touch(&mut state);
                state.answered(self.rule, state.now, false);
            }
            Action::Ask => {
                state.quiet = false;
                self.ask(&mut state);
            }
            Action::Stall => (state.stalled, state.stalls) = (true, state.stalls - 1),
            Action::Resume => state.stalled = false,
            Action::CutToOther => state.to_other.cut(),
            Action::CutToLeader => state.to_leader.cut(),
            Action::CutBoth => {
                state.to_other.cut();
                state.to_leader.cut();
            }
            Action::Elect => {
                state.successor = Some(state.now);
                // The connection is closed, as far as the leader can hear it.
                if !state.to_leader.cut && !state.stalled {
                    state.leads = false;
                }
                state.to_other.cut();
                state.to_leader.cut();
            }
            Action::StepDown => state.leads = false,
            Action::Expire => state.expired = true,
        }
        if matches!(action, Action::CutToOther | Action::CutToLeader | Action::CutBoth) {
            state.cuts -= 1;
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(OVERLAP, |_, state: &State| !(state.expired && state.believes()))]
    }
}

/// An order of events in which two clients believe that they hold the lock, if there is one.
fn overlap(rule: Rule, at: At, cuts: u8, stalls: u8) -> Option<Vec<Action>> {
    let checker = Ensemble { rule, at, cuts, stalls }.checker().threads(2).spawn_bfs().join();
    let found = checker.discovery(OVERLAP).map(|path| path.into_actions());
    println!("{rule:?} at the {at:?}, {} states: {found:?}", checker.unique_state_count());
    found
}

#[test]
fn a_cut_off_follower_keeps_a_dead_lock_alive_if_any_answer_counts() {
    assert!(overlap(Rule::Answers, At::Follower, 1, 0).is_some());
}

#[test]
fn a_cut_off_leader_keeps_a_dead_lock_alive_if_a_sync_counts() {
    assert_eq!(overlap(Rule::Sync, At::Follower, 2, 0), None);
    assert!(overlap(Rule::Sync, At::Leader, 2, 0).is_some());
}

#[test]
fn no_cut_makes_two_holders_if_only_writes_count() {
    assert_eq!(overlap(Rule::Write, At::Follower, 2, 0), None);
    assert_eq!(overlap(Rule::Write, At::Leader, 2, 0), None);
}

#[test]
fn no_stall_makes_two_holders_if_only_writes_count() {
    assert_eq!(overlap(Rule::Write, At::Follower, 0, 1), None);
    assert_eq!(overlap(Rule::Write, At::Leader, 0, 2), None);
}

/// What is left: the leader stalls, and is cut off before it has heard what happened meanwhile.
#[test]
fn a_stall_and_a_cut_at_the_same_time_make_two_holders_on_a_follower_only() {
    let events = overlap(Rule::Write, At::Follower, 1, 1).expect("the known class");
    let position = |action| events.iter().position(|event| *event == action);
    assert!(position(Action::Stall).is_some() && position(Action::Resume).is_some());
    assert_eq!(overlap(Rule::Write, At::Leader, 2, 1), None);
}
