//! The view of a queue against a store that answers late and in any order.

#[path = "view_world_tests.rs"]
mod world;

use proptest::prelude::*;

use self::world::{State, World, steps};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn only_waiters_that_the_store_admits_are_granted(steps in steps()) {
        World::after(&steps)?;
    }

    #[test]
    fn admitted_waiters_are_granted_once_the_news_has_arrived(steps in steps()) {
        let mut world = World::after(&steps)?;
        let listed_at = world.all_news();
        world.judge(listed_at)?;
        let admitted = queue::admitted(world.live.iter().map(|entry| entry.kind));
        for entry in world.live.iter().take(admitted) {
            let state = world.queue.get_mut(entry.revision).copied();
            prop_assert!(!matches!(state, Some(State::Waiting(_))), "{entry:?} still waits");
        }
    }

    #[test]
    fn deleted_entries_are_reported_gone(steps in steps()) {
        let mut world = World::after(&steps)?;
        world.all_news();
        world.queue.take_gone();
        for mine in &world.queue.mine {
            prop_assert!(world.live.iter().any(|entry| entry.revision == mine.revision));
        }
    }
}

fn entry(revision: i64, key: &str) -> QueueEntry {
    QueueEntry { revision, key: key.into(), kind: Kind::Exclusive }
}

/// Go's client uses one key for all locks of a session: the entry that a late deletion names may
/// have a successor with the same key.
#[test]
fn a_late_deletion_does_not_hit_the_keys_next_user() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "own"), vec![entry(9, "go")], ());
    queue.deleted(b"go", 8);
    assert!(queue.admitted(None).next().is_none());
    queue.deleted(b"go", 11);
    assert!(queue.admitted(None).next().is_some());
}

/// The deletion of the predecessor arrives before the answer that names it.
#[test]
fn a_deletion_from_before_the_answer_counts() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.deleted(b"a", 12);
    queue.enter(10, entry(10, "own"), vec![entry(9, "a")], ());
    assert!(queue.admitted(None).next().is_some());
}

/// A session that holds the predecessor's entry and mine is revoked: both go in one revision.
#[test]
fn a_waiter_is_not_granted_by_the_end_of_its_own_session() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "own"), vec![entry(9, "a")], "mine");
    queue.deleted(b"a", 12);
    queue.deleted(b"own", 12);
    assert_eq!(queue.take_gone(), ["mine"]);
    assert!(queue.admitted(None).next().is_none());
}

/// More deletions than are remembered happened while the transaction was under way.
#[test]
fn forgotten_deletions_ask_for_a_list() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.deleted(b"a", 11);
    for n in 0..REMEMBERED {
        queue.deleted(b"b", 12 + n as i64);
    }
    queue.enter(10, entry(10, "own"), vec![entry(9, "a")], ());
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    queue.listed(1000, &[entry(10, "own")]);
    assert!(queue.admitted(Some(1000)).next().is_some() && !queue.wants_list());
}

/// The signal arrives before the answer that shows the writer as it was.
#[test]
fn a_signal_from_before_the_answer_asks_for_a_list() {
    let mut queue = Queue::default();
    let reader = QueueEntry { kind: Kind::Shared, ..entry(10, "a/1.1.r") };
    let writer = entry(9, "a/1.0");
    queue.watch_began(1);
    queue.deleted(b"a/1.0.x", 12);
    queue.enter(10, reader.clone(), vec![writer.clone()], ());
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    queue.listed(11, &[writer.clone(), reader.clone()]);
    assert!(queue.wants_list(), "the list is older than the signal");
    queue.listed(12, &[QueueEntry { kind: Kind::Shared, ..writer.clone() }, reader.clone()]);
    assert!(queue.admitted(None).next().is_some() && !queue.wants_list());
    // An older list does not bring back its state.
    queue.listed(10, &[writer, reader]);
    assert!(queue.admitted(None).next().is_some());
}
