//! `distlock elect` and `distlock leader`.

use rustix::process::Signal;

use crate::{
    place::{Place, Process},
    stores::on_every_store,
};

#[test]
fn a_leader_is_shown_and_resigns() {
    let place = Place::new();
    let mut leader = place.start(&["elect", "e", "http://me"]);
    let line = leader.line();
    assert!(line.starts_with("leading e with token"), "{line}");
    assert_eq!(place.run(&["leader", "e"]).1, "http://me\n");
    assert_eq!(place.run(&["elect", "e", "other", "--no-wait"]).0, Some(75));
    leader.signal(Signal::TERM);
    assert_eq!(leader.end(), Some(0));
    assert_eq!(place.run(&["elect", "e", "other", "--", "sh", "-c", "exit 4"]).0, Some(4));
}

on_every_store!(leadership_moves);

/// From a leader that is asked to end to one that is killed, to a third.
fn leadership_moves(place: &Place) {
    let mut first = place.start(&["elect", "e", "first", "--ttl", "10s"]);
    assert!(first.line().starts_with("leading e"));
    let mut watch = place.start(&["leader", "e", "--watch"]);
    assert_eq!(next_leader(&mut watch), "first");
    let id = place.show("e")["holders"][0]["attempt"].clone();
    assert!(id.is_string(), "{id}");
    let mut second = place.start(&["elect", "e", "second", "--ttl", "6s"]);
    place.await_waiters("e", 1);
    first.signal(Signal::TERM);
    assert_eq!(first.end(), Some(0));
    assert_ne!(place.show("e")["holders"][0]["attempt"], id, "it is left to its TTL");
    assert!(second.line().starts_with("leading e"));
    assert_eq!(next_leader(&mut watch), "second");
    let mut third =
        place.start(&["elect", "e", "third", "--", "sh", "-c", "echo leads; read line"]);
    place.await_waiters("e", 1);
    second.signal(Signal::KILL);
    assert_eq!(second.end(), Some(137));
    assert_eq!(third.line(), "leads");
    assert_eq!(next_leader(&mut watch), "third");
    third.say("\n");
    assert_eq!(third.end(), Some(0));
    assert_eq!(watch.line(), "(no leader)");
}

/// Between two leaders there may be none.
fn next_leader(watch: &mut Process) -> String {
    match watch.line() {
        none if none == "(no leader)" => watch.line(),
        leader => leader,
    }
}
