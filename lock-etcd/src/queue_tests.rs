//! The view of a queue against a store that answers late and in any order.

use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*};

use super::*;

/// One step of the world. Numbers pick among what there is.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody else enters with one of a few keys, or leaves.
    ForeignEnters(usize),
    ForeignLeaves(usize),
    /// One of ours sends its acquiring transaction; its answer comes later.
    Enter(usize),
    Answer(usize),
    /// One of ours is deleted, by its release or by an operator.
    Delete(usize),
    /// One of ours that was granted gives the lock back; its deletion comes later.
    Release,
    Deliver(usize),
    WatchBegins,
    WatchEnds,
    List,
    ListAnswer(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0usize..4).prop_map(Step::ForeignEnters),
        3 => (0usize..4).prop_map(Step::ForeignLeaves),
        3 => (0usize..4).prop_map(Step::Enter),
        4 => (0usize..4).prop_map(Step::Answer),
        1 => (0usize..4).prop_map(Step::Delete),
        3 => Just(Step::Release),
        5 => (1usize..4).prop_map(Step::Deliver),
        1 => Just(Step::WatchBegins),
        1 => Just(Step::WatchEnds),
        1 => Just(Step::List),
        2 => (0usize..4).prop_map(Step::ListAnswer),
    ];
    vec(step, 1..120)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Waiting,
    Granted,
}

/// The store and the ways to it.
#[derive(Default)]
struct World {
    revision: i64,
    live: Vec<Place>,
    /// Answers on their way.
    answers: Vec<(Place, Vec<Place>)>,
    lists: Vec<(i64, Vec<Place>)>,
    /// Events that the watch has not delivered yet.
    events: VecDeque<(Vec<u8>, i64)>,
    watching: bool,
    /// Created and deleted at.
    dead: Vec<(i64, i64)>,
    /// Ours that were granted, and those that gave the lock back but are not deleted yet.
    holder: Option<i64>,
    given_back: Vec<i64>,
    queue: Queue<State>,
}

impl World {
    fn put(&mut self, key: Vec<u8>) -> Option<Place> {
        if self.live.iter().any(|place| place.key == key) {
            return None;
        }
        self.revision += 1;
        let place = Place { revision: self.revision, key };
        self.live.push(place.clone());
        Some(place)
    }

    fn delete(&mut self, at: usize) {
        let place = self.live.remove(at);
        self.revision += 1;
        self.dead.push((place.revision, self.revision));
        if self.watching {
            self.events.push_back((place.key, self.revision));
        }
    }

    fn pick(&self, ours: bool, n: usize) -> Option<usize> {
        let fits = |place: &Place| place.key.starts_with(b"o") == ours;
        let places: Vec<_> = (0..self.live.len()).filter(|i| fits(&self.live[*i])).collect();
        (!places.is_empty()).then(|| places[n % places.len()])
    }

    fn step(&mut self, step: &Step) -> Option<i64> {
        let mut listed_at = None;
        match *step {
            Step::ForeignEnters(n) => drop(self.put(vec![b'f', n as u8])),
            Step::ForeignLeaves(n) => {
                if let Some(at) = self.pick(false, n) {
                    self.delete(at);
                }
            }
            Step::Enter(n) => {
                let before = self.live.clone();
                if let Some(own) = self.put(vec![b'o', n as u8]) {
                    self.answers.push((own, before));
                }
            }
            Step::Answer(n) if !self.answers.is_empty() => {
                let (own, before) = self.answers.remove(n % self.answers.len());
                self.queue.enter(own, before, State::Waiting);
            }
            Step::Delete(n) => {
                if let Some(at) = self.pick(true, n) {
                    self.delete(at);
                }
            }
            Step::Release => {
                if let Some(revision) = self.holder.take() {
                    let place = self.live.iter().find(|place| place.revision == revision);
                    if let Some(key) = place.map(|place| place.key.clone()) {
                        self.queue.released(revision, &key);
                        self.given_back.push(revision);
                    }
                }
            }
            Step::Deliver(n) => {
                for _ in 0..n {
                    if let Some((key, at)) = self.events.pop_front() {
                        self.queue.deleted(&key, at);
                    }
                }
            }
            Step::WatchBegins if !self.watching => {
                self.watching = true;
                self.queue.watch_began(self.revision);
            }
            Step::WatchEnds => {
                self.watching = false;
                self.events.clear();
                self.queue.watch_ended();
            }
            Step::List => self.lists.push((self.revision, self.live.clone())),
            Step::ListAnswer(n) if !self.lists.is_empty() => {
                let (at, places) = self.lists.remove(n % self.lists.len());
                self.queue.listed(at, &places);
                listed_at = Some(at);
            }
            _ => {}
        }
        listed_at
    }

    /// Everything that is under way arrives, and then a list.
    fn all_news(&mut self) -> Option<i64> {
        while !self.answers.is_empty() {
            self.step(&Step::Answer(0));
        }
        let given_back = std::mem::take(&mut self.given_back);
        for revision in given_back {
            if let Some(at) = self.live.iter().position(|place| place.revision == revision) {
                self.delete(at);
            }
        }
        self.step(&Step::Deliver(1000));
        self.lists.clear();
        self.step(&Step::List);
        self.step(&Step::ListAnswer(0))
    }

    /// Grants what the queue says, and checks it against the truth.
    fn judge(&mut self, listed_at: Option<i64>) -> Result<(), TestCaseError> {
        self.queue.take_gone();
        let Some(state) = self.queue.head(listed_at) else { return Ok(()) };
        if *state != State::Waiting {
            return Ok(());
        }
        *state = State::Granted;
        let revision = *self.queue.order.front().unwrap();
        for place in self.live.iter().filter(|place| place.revision < revision) {
            prop_assert!(
                self.given_back.contains(&place.revision),
                "{revision} was granted before {place:?} was gone"
            );
        }
        let dead = self.dead.iter().find(|(created, _)| *created == revision);
        if let Some((_, at)) = dead {
            let on_its_way = self.events.iter().any(|(_, event)| event == at);
            prop_assert!(
                on_its_way || listed_at.is_some_and(|listed| listed < *at),
                "{revision} was granted after {at} had told that it is gone"
            );
        }
        self.holder = Some(revision);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nobody_is_granted_while_somebody_is_before_it(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            let listed_at = world.step(step);
            world.judge(listed_at)?;
        }
    }

    #[test]
    fn the_first_is_granted_once_the_news_has_arrived(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            let listed_at = world.step(step);
            world.judge(listed_at)?;
        }
        let listed_at = world.all_news();
        world.judge(listed_at)?;
        if let Some(first) = world.live.first().filter(|place| place.key.starts_with(b"o")) {
            let state = world.queue.get_mut(first.revision).copied();
            prop_assert!(state != Some(State::Waiting), "{first:?} still waits");
        }
    }

    #[test]
    fn what_is_deleted_is_reported_gone(steps in steps()) {
        let mut world = World::default();
        for step in &steps {
            let listed_at = world.step(step);
            world.judge(listed_at)?;
        }
        world.all_news();
        world.queue.take_gone();
        for mine in &world.queue.mine {
            prop_assert!(world.live.iter().any(|place| place.revision == mine.revision));
        }
    }
}

/// Go's client uses one key for all locks of a session: the entry that a late deletion names may
/// have a successor with the same key.
#[test]
fn a_late_deletion_does_not_hit_the_keys_next_user() {
    let mut queue = Queue::default();
    let place = |revision, key: &str| Place { revision, key: key.into() };
    queue.watch_began(1);
    queue.enter(place(10, "own"), vec![place(9, "go")], ());
    queue.deleted(b"go", 8);
    assert!(queue.head(None).is_none());
    queue.deleted(b"go", 11);
    assert!(queue.head(None).is_some());
}

/// The deletion of the predecessor arrives before the answer that names it.
#[test]
fn a_deletion_from_before_the_answer_counts() {
    let mut queue = Queue::default();
    let place = |revision, key: &str| Place { revision, key: key.into() };
    queue.watch_began(1);
    queue.deleted(b"a", 12);
    queue.enter(place(10, "own"), vec![place(9, "a")], ());
    assert!(queue.head(None).is_some());
}

/// A session that holds the predecessor's entry and mine is revoked: both go in one revision.
#[test]
fn nobody_is_granted_by_the_end_of_its_own_session() {
    let mut queue = Queue::default();
    let place = |revision, key: &str| Place { revision, key: key.into() };
    queue.watch_began(1);
    queue.enter(place(10, "own"), vec![place(9, "a")], "mine");
    queue.deleted(b"a", 12);
    queue.deleted(b"own", 12);
    assert_eq!(queue.take_gone(), ["mine"]);
    assert!(queue.head(None).is_none());
}

/// More deletions than are remembered happened while the transaction was under way.
#[test]
fn what_may_be_forgotten_is_listed() {
    let mut queue = Queue::default();
    let place = |revision, key: &str| Place { revision, key: key.into() };
    queue.watch_began(1);
    queue.deleted(b"a", 11);
    for n in 0..REMEMBERED {
        queue.deleted(b"b", 12 + n as i64);
    }
    queue.enter(place(10, "own"), vec![place(9, "a")], ());
    assert!(queue.head(None).is_none() && queue.wants_list());
    queue.listed(1000, &[place(10, "own")]);
    assert!(queue.head(Some(1000)).is_some() && !queue.wants_list());
}
