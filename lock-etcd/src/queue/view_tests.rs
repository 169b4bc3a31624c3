//! The view of a queue against a store that answers late and in any order.

#[path = "view_world_tests.rs"]
mod world;

use proptest::{
    prelude::*,
    test_runner::{TestError, TestRunner},
};

use self::world::{State, Step, Trust, World, steps};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn only_waiters_that_the_store_admits_are_granted(steps in steps()) {
        World::after(&steps, Trust::Nothing)?;
    }

    #[test]
    fn admitted_waiters_are_granted_once_the_news_has_arrived(steps in steps()) {
        let mut world = World::after(&steps, Trust::Nothing)?;
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
        let mut world = World::after(&steps, Trust::Nothing)?;
        world.all_news();
        world.queue.take_gone();
        for mine in &world.queue.mine {
            prop_assert!(world.live.iter().any(|entry| entry.revision == mine.revision));
        }
    }
}

/// The check of completeness is what keeps the last entries before an attempt from admitting it.
#[test]
fn a_short_list_that_is_taken_for_a_whole_one_admits_early() {
    let enters = |slot| Step::ForeignEnters(slot, Kind::Exclusive);
    let listed = [
        vec![enters(0), enters(1), enters(2), Step::WatchBegins],
        vec![Step::Enter(0, Kind::Exclusive), Step::Answer(0), Step::List, Step::ListAnswer(0)],
    ];
    for trust in [Trust::Answers, Trust::Lists] {
        let config = ProptestConfig { cases: 20_000, max_shrink_iters: 0, ..Default::default() };
        let config = ProptestConfig { failure_persistence: None, ..config };
        let found = TestRunner::new(config).run(&steps(), |steps| {
            World::after(&[listed.concat(), steps].concat(), trust).map(drop)
        });
        assert!(matches!(found, Err(TestError::Fail(..))), "{trust:?}: {found:?}");
    }
}

fn entry(revision: i64, key: &str) -> QueueEntry {
    QueueEntry { revision, key: key.into(), kind: Kind::Exclusive }
}

fn all<const N: usize>(entries: [QueueEntry; N]) -> Option<Before> {
    Some(Before::all(entries.to_vec()))
}

/// These entries, and more before them.
fn last<const N: usize>(entries: [QueueEntry; N]) -> Option<Before> {
    Some(Before { more: true, ..Before::all(entries.to_vec()) })
}

fn list<const N: usize>(at: i64, entries: [QueueEntry; N]) -> Listed {
    Listed::all(at, entries.to_vec())
}

/// Go's client uses one key for all locks of a session: the entry that a late deletion names may
/// have a successor with the same key.
#[test]
fn a_late_deletion_does_not_hit_the_keys_next_user() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "own"), all([entry(9, "go")]), ());
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
    queue.enter(10, entry(10, "own"), all([entry(9, "a")]), ());
    assert!(queue.admitted(None).next().is_some());
}

/// Watches of single keys tell deletions, too.
#[test]
fn a_deletion_that_was_told_without_a_watch_of_the_queue_outlives_older_lists() {
    let mut queue = Queue::default();
    queue.enter(10, entry(10, "own"), last([entry(8, "a"), entry(9, "b")]), ());
    assert_eq!(queue.bell(0), Some(&b"b"[..]));
    queue.deleted(b"b", 12);
    queue.watch_ended();
    queue.listed(&list(11, [entry(8, "a"), entry(9, "b"), entry(10, "own")]));
    queue.watch_began(11);
    queue.deleted(b"a", 13);
    assert!(queue.admitted(Some(11)).next().is_some());
}

/// A session that holds the predecessor's entry and mine is revoked: both go in one revision.
#[test]
fn a_waiter_is_not_granted_by_the_end_of_its_own_session() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "own"), all([entry(9, "a")]), "mine");
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
    queue.enter(10, entry(10, "own"), all([entry(9, "a")]), ());
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    queue.listed(&list(1000, [entry(10, "own")]));
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
    queue.enter(10, reader.clone(), all([writer.clone()]), ());
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    queue.listed(&list(11, [writer.clone(), reader.clone()]));
    assert!(queue.wants_list(), "the list is older than the signal");
    let shared = QueueEntry { kind: Kind::Shared, ..writer.clone() };
    queue.listed(&list(12, [shared, reader.clone()]));
    assert!(queue.admitted(None).next().is_some() && !queue.wants_list());
    // An older list does not bring back its state.
    queue.listed(&list(10, [writer, reader]));
    assert!(queue.admitted(None).next().is_some());
}

/// The entries before it that are known are gone, and others are not known.
#[test]
fn the_last_entries_before_an_attempt_do_not_admit_it() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "own"), last([entry(9, "a")]), ());
    assert_eq!((queue.first(), queue.places().next()), (None, Some((&(), 1))));
    queue.deleted(b"a", 11);
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    let part = Listed { range: 9..=10, ..list(12, [entry(10, "own")]) };
    queue.listed(&part);
    assert!(queue.admitted(Some(12)).next().is_none() && queue.wants_list());
    queue.listed(&list(13, [entry(5, "b"), entry(10, "own")]));
    assert!(queue.admitted(Some(13)).next().is_none() && !queue.wants_list());
    assert_eq!(queue.first(), Some(&b"b"[..]));
    queue.deleted(b"b", 14);
    assert!(queue.admitted(None).next().is_some());
}

/// The reply to its request was lost.
#[test]
fn an_attempt_that_does_not_know_its_place_waits_as_others_do() {
    let mut queue = Queue::default();
    let before = Before { count: None, ..last([entry(8, "a"), entry(9, "b")]).unwrap() };
    queue.enter(10, entry(10, "own"), Some(before), ());
    assert_eq!((queue.bell(0), queue.places().count()), (Some(&b"b"[..]), 0));
    assert!(!queue.may_ring_by(10, Some(0)) && queue.may_ring_by(11, Some(0)));
    queue.watch_began(10);
    assert!(queue.wants_list());
}

/// The list does not show that the first one is gone, and no watch will.
#[test]
fn a_known_attempt_is_known_no_more_after_a_short_list() {
    let mut queue = Queue::default();
    queue.enter(10, entry(10, "own"), all([entry(5, "a"), entry(8, "b"), entry(9, "c")]), ());
    queue.watch_began(12);
    let entries = [entry(9, "c"), entry(10, "own")];
    queue.listed(&Listed { range: 10..=10, ..list(12, entries) });
    queue.deleted(b"b", 13);
    queue.deleted(b"c", 14);
    assert!(queue.admitted(None).next().is_none() && queue.wants_list());
    queue.listed(&Listed { range: 0..=10, ..list(14, [entry(10, "own")]) });
    assert!(queue.admitted(None).next().is_some() && !queue.wants_list());
}

/// One list is enough for all of them.
#[test]
fn an_unknown_attempt_behind_a_known_one_needs_no_list_yet() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "holder"), None, ());
    queue.enter(20, entry(20, "first"), all([entry(10, "holder"), entry(11, "a")]), ());
    queue.enter(30, entry(30, "second"), last([entry(29, "b")]), ());
    assert!(!queue.wants_list());
    queue.released(10, b"holder");
    assert!(!queue.wants_list());
    queue.released(20, b"first");
    assert!(queue.wants_list() && queue.admitted(None).next().is_none());
}

/// A client with many waiters on a name needs no list for each.
#[test]
fn what_is_known_before_an_earlier_attempt_completes_a_short_list() {
    let mut queue = Queue::default();
    queue.watch_began(1);
    queue.enter(10, entry(10, "holder"), None, 1);
    queue.enter(12, entry(12, "waiter"), last([entry(10, "holder"), entry(11, "a")]), 2);
    queue.enter(13, entry(13, "last"), last([entry(11, "a"), entry(12, "waiter")]), 3);
    assert!(!queue.wants_list());
    queue.released(10, b"holder");
    queue.deleted(b"a", 14);
    assert_eq!(queue.admitted(None).collect::<Vec<_>>(), [&2]);
    queue.deleted(b"waiter", 15);
    assert_eq!(queue.admitted(None).collect::<Vec<_>>(), [&3]);
}
