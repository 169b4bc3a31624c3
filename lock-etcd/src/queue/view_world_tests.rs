//! A store with some clients. Its answers and events come late and in any order. An exclusive
//! attempt sees the last two entries before it, at first and in lists.

use std::collections::VecDeque;

use lock_core::queue::{Verdict, judge};
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::layout::keys;

/// One step of the world. The numbers select one of the current entries or messages.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A foreign client enters with one of a few keys, or leaves.
    ForeignEnters(usize, Kind),
    ForeignLeaves(usize),
    /// A watch of one key tells of its deletion, while the queue is not watched.
    Hear(usize),
    /// One of our attempts sends its acquiring transaction; its answer comes later.
    Enter(usize, Kind),
    Answer(usize),
    /// One of our entries is deleted, by its release or by an operator.
    Delete(usize),
    /// One of our holders gives the lock back; its deletion comes later.
    Release(usize),
    /// The first in line becomes shared; the signal comes later.
    Downgrade,
    Signal,
    /// One of our holders becomes exclusive, if it can; it learns that later.
    Upgrade(usize),
    Upgraded,
    Deliver(usize),
    WatchBegins,
    WatchEnds,
    /// The next list is asked for; the store may answer when it does not fit any more.
    Ask,
    List,
    ListAnswer(usize),
    /// A list is asked for that shows no more than that our first attempt stands.
    Stand,
}

fn kind() -> impl Strategy<Value = Kind> {
    let permit = |weight| Kind::Permit { weight, limit: 2 };
    let (exclusive, shared) = (Kind::Exclusive, Kind::Shared);
    select(vec![exclusive, exclusive, shared, shared, permit(1), permit(2)])
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0usize..4, kind()).prop_map(|(n, kind)| Step::ForeignEnters(n, kind)),
        3 => (0usize..4).prop_map(Step::ForeignLeaves),
        3 => (0usize..4, kind()).prop_map(|(n, kind)| Step::Enter(n, kind)),
        4 => (0usize..4).prop_map(Step::Answer),
        1 => (0usize..4).prop_map(Step::Delete),
        3 => (0usize..4).prop_map(Step::Release),
        2 => Just(Step::Downgrade),
        2 => Just(Step::Signal),
        1 => (0usize..4).prop_map(Step::Upgrade),
        2 => Just(Step::Upgraded),
        5 => (1usize..4).prop_map(Step::Deliver),
        2 => (0usize..4).prop_map(Step::Hear),
        1 => Just(Step::WatchBegins),
        1 => Just(Step::WatchEnds),
        1 => Just(Step::Ask),
        1 => Just(Step::List),
        2 => (0usize..4).prop_map(Step::ListAnswer),
        1 => Just(Step::Stand),
    ];
    vec(step, 1..120)
}

/// Returns the last of these entries, and whether there are more.
fn last(mut entries: Vec<QueueEntry>, last: usize) -> (Vec<QueueEntry>, bool) {
    let hidden = entries.len().saturating_sub(last);
    (entries.split_off(hidden), hidden > 0)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Waiting(i64),
    Granted,
}

/// How many entries an exclusive attempt sees.
const LAST: usize = 2;

/// What a broken view takes for a list that goes back to the head of the queue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Trust {
    /// Only such a list.
    #[default]
    Nothing,
    /// The entries in the answer to an acquiring transaction.
    Answers,
    Lists,
}

/// The store, and the messages to and from it.
#[derive(Default)]
pub(super) struct World {
    revision: i64,
    pub(super) live: Vec<QueueEntry>,
    /// Answers under way.
    answers: Vec<(QueueEntry, Before)>,
    lists: Vec<Listed>,
    /// Up to which revision the next list goes, if it was asked for.
    asked: Option<Option<i64>>,
    trust: Trust,
    /// Deletions that watches of single keys may tell.
    unheard: Vec<(Vec<u8>, i64)>,
    /// Events that the watch has not delivered yet.
    events: VecDeque<(Vec<u8>, i64)>,
    /// Signals that were not sent yet.
    signals: Vec<Vec<u8>>,
    watching: bool,
    /// The revision since which a list is wanted.
    wanted: Option<i64>,
    /// Revisions of creation and deletion.
    dead: Vec<(i64, i64)>,
    /// Our holders, and our attempts that gave the lock back but are not deleted yet.
    holders: Vec<i64>,
    given_back: Vec<i64>,
    /// Our holders that do not know yet whether they are exclusive now.
    upgrading: Vec<QueueEntry>,
    pub(super) queue: Queue<State>,
}

impl World {
    /// Takes all steps, and checks each.
    pub(super) fn after(steps: &[Step], trust: Trust) -> Result<Self, TestCaseError> {
        let mut world = Self { trust, ..Self::default() };
        for step in steps {
            let listed_at = world.step(step);
            world.judge(listed_at)?;
        }
        Ok(world)
    }

    fn put(&mut self, client: &str, slot: usize, kind: Kind) -> Option<QueueEntry> {
        let key = keys::key(client, 1, slot as u32, Role::Ours(kind)).into_bytes();
        if self.live.iter().any(|entry| entry.key == key) || self.is_used(&key) {
            return None;
        }
        self.revision += 1;
        let entry = QueueEntry { revision: self.revision, key, kind };
        self.live.push(entry.clone());
        Some(entry)
    }

    /// Whether an attempt of ours does not know yet that its entry is gone: until it does, its slot
    /// is in use.
    fn is_used(&self, key: &Vec<u8>) -> bool {
        let known = self.queue.live.get(key);
        self.answers.iter().any(|(own, _)| own.key == *key)
            || self.queue.mine.iter().any(|mine| Some(&mine.revision) == known)
    }

    fn delete(&mut self, at: usize) {
        let entry = self.live.remove(at);
        self.revision += 1;
        self.dead.push((entry.revision, self.revision));
        self.report(entry.key);
    }

    fn report(&mut self, key: Vec<u8>) {
        match self.watching {
            true => self.events.push_back((key, self.revision)),
            false => self.unheard.push((key, self.revision)),
        }
    }

    fn before(&self, kind: Kind) -> Before {
        let all = Before::all(self.live.clone());
        if kind != Kind::Exclusive {
            return all;
        }
        let (entries, more) = last(all.entries, LAST);
        Before { entries, more: more && self.trust != Trust::Answers, count: all.count }
    }

    fn list(&mut self) -> Listed {
        let all = Listed::all(self.revision, self.live.clone());
        let Some(up_to) = self.asked.take().unwrap_or_else(|| self.queue.up_to()) else {
            return all;
        };
        let own = all.entries.into_iter().filter(|entry| entry.revision <= up_to).collect();
        let (entries, more) = last(own, LAST + 1);
        let low = entries.first().map(|first| first.revision + 1);
        let low = low.filter(|_| more && self.trust != Trust::Lists).unwrap_or(0);
        let later = self.queue.mine.iter().map(|mine| mine.revision);
        let later = later.filter(|later| low > 0 && *later > up_to);
        let gone = later.filter(|later| self.standing(*later).is_none()).collect();
        Listed { entries, range: low..=up_to, gone, ..all }
    }

    fn pick(&self, ours: bool, n: usize) -> Option<usize> {
        let fits = |entry: &QueueEntry| entry.key.starts_with(b"o") == ours;
        let fitting: Vec<_> = (0..self.live.len()).filter(|i| fits(&self.live[*i])).collect();
        (!fitting.is_empty()).then(|| fitting[n % fitting.len()])
    }

    fn standing(&self, revision: i64) -> Option<usize> {
        self.live.iter().position(|entry| entry.revision == revision)
    }

    fn step(&mut self, step: &Step) -> Option<i64> {
        match *step {
            Step::ForeignEnters(n, kind) => drop(self.put("f/", n, kind)),
            Step::ForeignLeaves(n) => {
                if let Some(at) = self.pick(false, n) {
                    self.delete(at);
                }
            }
            Step::Enter(n, kind) => {
                let before = self.before(kind);
                if let Some(own) = self.put("o/", n, kind) {
                    self.answers.push((own, before));
                }
            }
            Step::Answer(n) if !self.answers.is_empty() => {
                let (own, before) = self.answers.remove(n % self.answers.len());
                let state = State::Waiting(own.revision);
                self.queue.enter(own.revision, own, Some(before), state);
            }
            Step::Delete(n) => {
                if let Some(at) = self.pick(true, n) {
                    self.delete(at);
                }
            }
            Step::Release(n) if !self.holders.is_empty() => {
                let revision = self.holders.remove(n % self.holders.len());
                if let Some(at) = self.standing(revision) {
                    let key = self.live[at].key.clone();
                    self.queue.released(revision, &key);
                    self.given_back.push(revision);
                }
            }
            Step::Deliver(n) => {
                for _ in 0..n {
                    if let Some((key, at)) = self.events.pop_front() {
                        self.queue.deleted(&key, at);
                    }
                }
            }
            Step::Hear(n) if !self.watching && !self.unheard.is_empty() => {
                let (key, at) = self.unheard.remove(n % self.unheard.len());
                self.queue.deleted(&key, at);
            }
            Step::WatchBegins if !self.watching => {
                self.watching = true;
                self.unheard.clear();
                self.queue.watch_began(self.revision);
                // A new watch is not relied on: there are lists at once, independent of the view.
                self.wanted = Some(self.revision);
            }
            Step::WatchEnds => {
                self.watching = false;
                self.events.clear();
                self.queue.watch_ended();
            }
            Step::Ask => self.asked = Some(self.queue.up_to()),
            Step::List => {
                let list = self.list();
                self.lists.push(list);
            }
            Step::Stand if !self.watching => {
                let first = self.queue.up_to().and_then(|first| self.standing(first));
                if let Some(QueueEntry { revision, key, .. }) = first.map(|at| &self.live[at]) {
                    let list = Listed::one(self.revision, (key.clone(), *revision));
                    self.lists.push(list);
                }
            }
            Step::ListAnswer(n) if !self.lists.is_empty() => {
                let list = self.lists.remove(n % self.lists.len());
                self.queue.listed(&list);
                let at = list.revision;
                self.wanted = self.wanted.filter(|wanted| at < *wanted);
                return Some(at);
            }
            _ => self.convert(step),
        }
        None
    }

    fn convert(&mut self, step: &Step) {
        match *step {
            Step::Downgrade => {
                let first = self.live.first_mut().filter(|first| first.kind == Kind::Exclusive);
                let Some(first) = first else { return };
                first.kind = Kind::Shared;
                self.revision += 1;
                let key = String::from_utf8(first.key.clone()).unwrap();
                self.signals.push(keys::signal(&key).into_bytes());
                if self.holders.contains(&first.revision) {
                    self.queue.update(first);
                }
            }
            Step::Signal => {
                if let Some(signal) = self.signals.pop() {
                    self.revision += 1;
                    self.report(signal);
                }
            }
            Step::Upgrade(n) if !self.holders.is_empty() => {
                let revision = self.holders.remove(n % self.holders.len());
                let Some(at) = self.standing(revision) else { return };
                self.queue.leave(revision);
                let mut entry = self.live[at].clone();
                let slot = self.revision as usize + 100;
                if self.live.len() == 1
                    && let Some(new) = self.put("o/", slot, Kind::Exclusive)
                {
                    // In one revision.
                    self.revision -= 1;
                    self.delete(at);
                    entry = new;
                }
                self.upgrading.push(entry);
            }
            Step::Upgraded => {
                if let Some(entry) = self.upgrading.pop() {
                    self.holders.push(entry.revision);
                    self.queue.enter(entry.revision, entry, None, State::Granted);
                }
            }
            _ => {}
        }
    }

    /// Delivers everything under way, and then lists if one is needed.
    pub(super) fn all_news(&mut self) -> Option<i64> {
        while !self.answers.is_empty() {
            self.step(&Step::Answer(0));
            self.want();
        }
        while !self.upgrading.is_empty() {
            self.step(&Step::Upgraded);
        }
        let given_back = std::mem::take(&mut self.given_back);
        for revision in given_back {
            if let Some(at) = self.standing(revision) {
                self.delete(at);
            }
        }
        while !self.signals.is_empty() {
            self.step(&Step::Signal);
        }
        self.step(&Step::Deliver(1000));
        self.lists.clear();
        self.asked = None;
        if self.watching && self.wanted.is_none() && !self.queue.wants_list() {
            return None;
        }
        // A list up to the first attempt may show that it is gone, or have the rest listed.
        let mut listed_at = None;
        for _ in 0..=self.queue.mine.len() {
            self.step(&Step::List);
            listed_at = self.step(&Step::ListAnswer(0));
        }
        listed_at
    }

    fn want(&mut self) {
        if self.queue.wants_list() {
            self.wanted.get_or_insert(self.revision);
        }
    }

    /// Grants what the queue admits, and checks it against the store.
    pub(super) fn judge(&mut self, listed_at: Option<i64>) -> Result<(), TestCaseError> {
        self.queue.take_gone();
        self.want();
        let mut granted = Vec::new();
        for state in self.queue.admitted(listed_at) {
            if let State::Waiting(revision) = *state {
                granted.push(revision);
                *state = State::Granted;
            }
        }
        for revision in granted {
            self.check(revision, listed_at)?;
            self.holders.push(revision);
        }
        Ok(())
    }

    fn check(&self, revision: i64, listed_at: Option<i64>) -> Result<(), TestCaseError> {
        let dead = self.dead.iter().find(|(created, _)| *created == revision);
        if let Some((_, at)) = dead {
            let on_its_way = self.events.iter().any(|(_, event)| event == at);
            prop_assert!(
                on_its_way || listed_at.is_some_and(|listed| listed < *at),
                "{revision} was granted after {at} had told that it is gone"
            );
        }
        let Some(own) = self.standing(revision) else { return Ok(()) };
        let before = self.live.iter().filter(|entry| entry.revision < revision);
        let before = before.filter(|entry| !self.given_back.contains(&entry.revision));
        let before: Vec<_> = before.map(|entry| entry.kind).collect();
        prop_assert_eq!(judge(&before, self.live[own].kind), Verdict::Admitted);
        Ok(())
    }
}
