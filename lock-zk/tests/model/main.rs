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
/// Without the nanoseconds that keep what happens within a unit in order.
const TICK: Duration = Duration::from_nanos(2_000_000_000 - 100);
const OVERLAP: &str = "nobody is granted a lock that somebody believes in";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rule {
    /// Any answer proves its send time: the first edition.
    Answers,
    /// A `sync` proves what was answered a tick before.
    Sync,
    /// A write proves what was answered a tick before.
    OneWrite,
    /// A write that is sent after the answer to such a write proves it: the crate's own code.
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
    /// Cuts that end. What is sent meanwhile arrives then, in order.
    heals: u8,
    stalls: u8,
    /// The session's timeout, and how long a follower stays without hearing from its leader, in units.
    ttl: u8,
    sync_limit: u8,
    /// No run is longer.
    end: u8,
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
    fn arrives(&self) -> bool {
        !self.cut && !self.packets.is_empty()
    }

    /// Forgets what will never arrive.
    fn tidy(&mut self, heals: u8) {
        if self.cut && heals == 0 {
            self.packets.clear();
        }
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
    /// What the client knows: answered requests and when they were sent and answered, in its own way
    /// or in the crate's; the requests without an answer; whether it has sent something in this unit.
    touches: Vec<(u8, u8)>,
    evidence: Evidence,
    asked: VecDeque<(u8, u8)>,
    /// How many answers there were in this unit: what is sent after one is sent later.
    answers: u8,
    quiet: bool,
    confirmed: u8,
    cuts: u8,
    heals: u8,
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
    HealToOther,
    HealToLeader,
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
    fn answered(&mut self, rule: Rule, sent: (u8, u8), is_proof: bool) {
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
            // The others prove less.
            let old = self.touches.iter().filter(|(_, answered)| answered + 2 <= self.now).count();
            self.touches.drain(..old.saturating_sub(1));
        }
    }

    /// What the crate's own code makes of it.
    fn proven(&mut self, sent: (u8, u8), is_write: bool) -> Option<u8> {
        let order = |number| Duration::from_nanos(u64::from(number));
        let sent = Self::at(sent.0) + order(sent.1);
        let answered = Self::at(self.now) + order(self.answers);
        let proof = match is_write {
            true => self.evidence.committed(sent, answered),
            false => self.evidence.read(sent, answered),
        };
        let since = proof?.since();
        (0..=self.now).rev().find(|time| Self::at(*time) <= since)
    }
}

impl Ensemble {
    /// The other has left the leader, of which it has heard nothing.
    fn is_gone(&self, state: &State) -> bool {
        state.now >= state.heard_by_other + self.sync_limit
    }

    fn believes(&self, state: &State) -> bool {
        state.now < state.confirmed + self.ttl
    }

    /// When whoever leads the majority ends the session.
    fn end(&self, state: &State) -> u8 {
        state.successor.unwrap_or(state.counted) + self.ttl
    }

    fn arrive_at_other(&self, state: &mut State) -> Option<()> {
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

    fn arrive_at_leader(&self, state: &mut State) -> Option<()> {
        let packet = state.to_leader.packets.pop_front()?;
        state.heard_by_leader = state.now;
        match packet {
            Packet::Table(true) if !state.expired && self.at == At::Follower => {
                state.counted = state.now;
            }
            // A session that was ended gets no answer. The third server is there for the write.
            Packet::Ask if !state.expired => state.to_other.packets.push_back(Packet::Ask),
            Packet::Propose => {
                let sent = state.asked.pop_front()?;
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
            At::Follower => state.follows() && !self.is_gone(state),
            At::Leader => state.leads && !state.stalled,
        }
    }

    fn ask(&self, state: &mut State) {
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
            evidence: Evidence::of_handshake(TICK, State::at(0)).0,
            asked: VecDeque::new(),
            answers: 0,
            quiet: true,
            confirmed: 0,
            cuts: self.cuts,
            heals: self.heals,
            stalls: self.stalls,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // Nothing that comes later can be an overlap: a deadline that has passed stays.
        if !self.believes(state) || state.now >= self.end {
            return;
        }
        let runs = state.leads && !state.stalled;
        let arrives = state.to_other.arrives() && !self.is_gone(state);
        let heard = runs && state.to_leader.arrives();
        let silent = state.heard_by_leader + self.sync_limit;
        let steps_down = runs && state.now >= silent;
        let must_step_down = steps_down && state.now >= silent + 2;
        let busy = arrives || heard || must_step_down || runs && state.ping_due;
        let mut when = |may: bool, action| may.then(|| actions.push(action));
        when(!busy, Action::Time);
        when(runs && state.ping_due, Action::Ping);
        when(arrives, Action::ArriveAtOther);
        when(heard, Action::ArriveAtLeader);
        let hears = state.heard_by_leader < state.now && state.to_leader.packets.is_empty();
        let chats = self.at == At::Leader && state.follows() && hears;
        when(chats, Action::Chatter);
        when(self.serves(state) && state.quiet, Action::Read);
        let asks = self.rule != Rule::Answers && state.asked.len() < 2;
        when(self.serves(state) && state.quiet && asks, Action::Ask);
        when(runs && state.stalls > 0, Action::Stall);
        when(state.stalled, Action::Resume);
        if state.cuts > 0 {
            when(!state.to_other.cut, Action::CutToOther);
            when(!state.to_leader.cut, Action::CutToLeader);
            when(!state.to_other.cut && !state.to_leader.cut, Action::CutBoth);
        }
        when(state.to_other.cut && state.heals > 0 && state.follows(), Action::HealToOther);
        when(state.to_leader.cut && state.heals > 0 && state.follows(), Action::HealToLeader);
        let elects = self.at == At::Leader && state.follows() && self.is_gone(state);
        when(elects, Action::Elect);
        when(self.at == At::Leader && steps_down, Action::StepDown);
        let ends = !state.expired && state.now >= self.end(state);
        when(ends && (runs || state.successor.is_some()), Action::Expire);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Time => {
                state.now += 1;
                (state.ping_due, state.quiet, state.answers) = (true, true, 0);
            }
            Action::Ping => {
                state.ping_due = false;
                state.to_other.packets.push_back(Packet::Ping);
            }
            Action::ArriveAtOther => self.arrive_at_other(&mut state)?,
            Action::ArriveAtLeader => self.arrive_at_leader(&mut state)?,
            Action::Chatter => state.to_leader.packets.push_back(Packet::Other),
            Action::Read => {
                state.quiet = false;
                self.touch(&mut state);
                state.answered(self.rule, (state.now, state.answers), false);
            }
            Action::Ask => {
                state.quiet = false;
                self.ask(&mut state);
            }
            Action::Stall => (state.stalled, state.stalls) = (true, state.stalls - 1),
            Action::Resume => state.stalled = false,
            Action::CutToOther => state.to_other.cut = true,
            Action::CutToLeader => state.to_leader.cut = true,
            Action::CutBoth => (state.to_other.cut, state.to_leader.cut) = (true, true),
            Action::HealToOther => (state.to_other.cut, state.heals) = (false, state.heals - 1),
            Action::HealToLeader => (state.to_leader.cut, state.heals) = (false, state.heals - 1),
            Action::Elect => {
                state.successor = Some(state.now);
                // The connection is closed, as far as the leader can hear it.
                if !state.to_leader.cut && !state.stalled {
                    state.leads = false;
                }
                (state.to_other.cut, state.to_leader.cut) = (true, true);
                // There is another one, which nothing of this one reaches.
                state.heals = 0;
            }
            Action::StepDown => state.leads = false,
            Action::Expire => state.expired = true,
        }
        if matches!(action, Action::CutToOther | Action::CutToLeader | Action::CutBoth) {
            state.cuts -= 1;
        }
        let heals = state.heals;
        state.to_other.tidy(heals);
        state.to_leader.tidy(heals);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let alone = |model: &Self, state: &State| !(state.expired && model.believes(state));
        vec![Property::always(OVERLAP, alone)]
    }
}

impl Ensemble {
    /// No faults, and a session of two ticks.
    fn new(rule: Rule, at: At) -> Self {
        Self { rule, at, cuts: 0, heals: 0, stalls: 0, ttl: 4, sync_limit: 3, end: 9 }
    }

    /// A session of three ticks, and followers that stay for longer.
    fn patient(rule: Rule, at: At) -> Self {
        Self { ttl: 6, sync_limit: 5, ..Self::new(rule, at) }
    }

    fn cut(self, cuts: u8) -> Self {
        Self { cuts, ..self }
    }

    fn healed(self, heals: u8) -> Self {
        Self { heals, ..self }
    }

    fn stalled(self, stalls: u8) -> Self {
        Self { stalls, ..self }
    }

    /// An order of events in which two clients believe that they hold the lock, if there is one.
    fn overlap(self) -> Option<Vec<Action>> {
        let text = format!("{self:?}");
        let checker = self.checker().threads(2).spawn_bfs().join();
        let found = checker.discovery(OVERLAP).map(|path| path.into_actions());
        println!("{text}, {} states: {found:?}", checker.unique_state_count());
        found
    }
}

#[test]
fn a_cut_off_follower_keeps_a_dead_lock_alive_if_any_answer_counts() {
    assert!(Ensemble::new(Rule::Answers, At::Follower).cut(1).overlap().is_some());
}

#[test]
fn a_cut_off_leader_keeps_a_dead_lock_alive_if_a_sync_counts() {
    assert_eq!(Ensemble::new(Rule::Sync, At::Follower).cut(2).overlap(), None);
    assert!(Ensemble::new(Rule::Sync, At::Leader).cut(2).overlap().is_some());
}

/// What the leader sends is late, and what it gets is lost.
#[test]
fn a_cut_that_heals_keeps_a_dead_lock_alive_if_one_write_counts() {
    assert_eq!(Ensemble::new(Rule::OneWrite, At::Follower).cut(2).overlap(), None);
    let found = Ensemble::patient(Rule::OneWrite, At::Follower).cut(2).healed(1).overlap();
    assert!(found.is_some_and(|events| events.contains(&Action::HealToOther)));
}

#[test]
fn no_cut_makes_two_holders_if_two_writes_count() {
    for at in [At::Follower, At::Leader] {
        assert_eq!(Ensemble::new(Rule::Write, at).cut(2).overlap(), None);
        assert_eq!(Ensemble::patient(Rule::Write, at).cut(2).healed(1).overlap(), None);
    }
}

#[test]
fn no_stall_makes_two_holders_if_two_writes_count() {
    assert_eq!(Ensemble::patient(Rule::Write, At::Follower).stalled(1).overlap(), None);
    assert_eq!(Ensemble::patient(Rule::Write, At::Leader).stalled(2).overlap(), None);
}

/// What is left: the leader stalls, and is cut off before it has heard what happened meanwhile.
#[test]
fn a_stall_and_a_cut_at_the_same_time_make_two_holders_on_a_follower_only() {
    let found = Ensemble::patient(Rule::Write, At::Follower).cut(1).stalled(1).overlap();
    let events = found.expect("the known class");
    assert!(events.contains(&Action::Stall) && events.contains(&Action::Resume));
    assert_eq!(Ensemble::patient(Rule::Write, At::Leader).cut(2).stalled(1).overlap(), None);
}
