//! Checks the rule of `session/proof.rs`, and weaker ones, against all orders of events.
//!
//! There are three servers, one of which leads, and one client, whose server is the leader or one
//! follower. The unit of time is half a tick. The leader pings once per unit, at any moment of it.
//! A packet that is sent over an open link to a running server arrives within the unit, in order.
//! Links are cut in one direction or both, and the leader stalls, at any moment.

mod ensemble;
#[allow(dead_code, unreachable_pub, reason = "the model uses its part")]
#[path = "../../src/session/proof.rs"]
mod proof;
mod state;
mod steps;

use stateright::{Checker, Model};

use self::{
    ensemble::{At, Ensemble, Rule},
    steps::{Action, OVERLAP},
};

impl Ensemble {
    /// No faults, and a session of two ticks.
    fn new(rule: Rule, at: At) -> Self {
        Self { rule, at, cuts: 0, heals: 0, stalls: 0, ttl: 4, sync_limit: 3, end: 9 }
    }

    /// A session of two ticks and a half, and followers that stay for longer. Shorter sessions do
    /// not show the result of a stall and a cut.
    fn patient(rule: Rule, at: At) -> Self {
        Self { ttl: 5, sync_limit: 4, ..Self::new(rule, at) }
    }

    /// A session of three ticks.
    fn long(rule: Rule, at: At) -> Self {
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

    /// Returns an order of events in which two clients believe that they hold the lock, if there is
    /// one.
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

/// Packets from the leader are late, and packets to it are lost.
#[test]
fn a_cut_that_heals_keeps_a_dead_lock_alive_if_one_write_counts() {
    assert_eq!(Ensemble::new(Rule::OneWrite, At::Follower).cut(2).overlap(), None);
    one_write_does_not_suffice(Ensemble::patient);
}

#[test]
fn no_cut_makes_two_holders_if_two_writes_count() {
    for at in [At::Follower, At::Leader] {
        assert_eq!(Ensemble::new(Rule::Write, at).cut(2).overlap(), None);
    }
    cuts_do_not_suffice(Ensemble::patient);
}

#[test]
fn no_stall_makes_two_holders_if_two_writes_count() {
    stalls_do_not_suffice(Ensemble::patient);
}

/// The case that is left: the leader stalls, and is cut off before it learns what happened
/// meanwhile.
#[test]
fn a_stall_and_a_cut_at_the_same_time_make_two_holders_on_a_follower_only() {
    a_stall_and_a_cut_suffice(Ensemble::patient);
}

#[test]
#[ignore = "five million states; faster with --release"]
fn the_same_holds_for_longer_sessions() {
    one_write_does_not_suffice(Ensemble::long);
    cuts_do_not_suffice(Ensemble::long);
    stalls_do_not_suffice(Ensemble::long);
    a_stall_and_a_cut_suffice(Ensemble::long);
}

fn one_write_does_not_suffice(ensemble: fn(Rule, At) -> Ensemble) {
    let found = ensemble(Rule::OneWrite, At::Follower).cut(2).healed(1).overlap();
    assert!(found.is_some_and(|events| events.contains(&Action::HealToOther)));
}

fn cuts_do_not_suffice(ensemble: fn(Rule, At) -> Ensemble) {
    for at in [At::Follower, At::Leader] {
        assert_eq!(ensemble(Rule::Write, at).cut(2).healed(1).overlap(), None);
    }
}

fn stalls_do_not_suffice(ensemble: fn(Rule, At) -> Ensemble) {
    assert_eq!(ensemble(Rule::Write, At::Follower).stalled(1).overlap(), None);
    assert_eq!(ensemble(Rule::Write, At::Leader).stalled(2).overlap(), None);
}

fn a_stall_and_a_cut_suffice(ensemble: fn(Rule, At) -> Ensemble) {
    let found = ensemble(Rule::Write, At::Follower).cut(1).stalled(1).overlap();
    let events = found.expect("the known class");
    assert!(events.contains(&Action::Stall) && events.contains(&Action::Resume));
    assert_eq!(ensemble(Rule::Write, At::Leader).cut(2).stalled(1).overlap(), None);
}
