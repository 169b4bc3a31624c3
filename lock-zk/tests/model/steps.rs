//! The actions of the model, and its next states.

use std::collections::VecDeque;

use stateright::{Model, Property};

use super::{
    ensemble::{At, Ensemble, Rule},
    proof::Evidence,
    state::{Link, Packet, State, TICK},
};

pub const OVERLAP: &str = "nobody is granted a lock that somebody believes in";

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
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
                // The connection is closed, if the leader can notice it.
                if !state.to_leader.cut && !state.stalled {
                    state.leads = false;
                }
                (state.to_other.cut, state.to_leader.cut) = (true, true);
                // There is another leader, and no packet of this one reaches it.
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
