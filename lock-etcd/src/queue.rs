//! What one client knows of the queue of one name. Pure: no I/O, no clock.
//!
//! A name's queue is the keys under its prefix, in order of their create revision; the first one
//! holds the lock. A client sees it through two windows:
//!
//! - **lists**, the entries before an attempt's own as the acquiring transaction saw them, and later
//!   the whole queue at some revision. A list is exact.
//! - **deletions** from the name's watch. One that arrives late, or never, delays but admits nobody.
//!
//! The set of entries before mine only shrinks. So the transaction's list minus the deletions is all
//! that a waiter needs, and an entry that a later list lacks is gone for good (a key that was
//! deleted and made again has another create revision, and is another entry).
//!
//! An attempt is *covered* when no deletion since its last sight in a list can have escaped the
//! watch. Only then may a deletion make it the holder: its own key, which stands under the same
//! watch, would otherwise have been reported gone in the same or an earlier message.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// How many deletions are remembered for acquiring transactions that are still under way. If more
/// happen meanwhile, the attempt asks for a list.
const REMEMBERED: usize = 256;

/// One entry of a queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// The revision that created it: its place in line, and the grant's fencing token.
    pub(crate) revision: i64,
    pub(crate) key: Vec<u8>,
}

/// The queue of one name as far as this client's own attempts need it.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    /// Live entries up to the last of ours, by key.
    live: HashMap<Vec<u8>, i64>,
    /// The same by create revision. A foreign transaction may have made two at once.
    order: BTreeMap<i64, u32>,
    mine: BTreeMap<i64, Mine<M>>,
    deleted: VecDeque<(Vec<u8>, i64)>,
    /// Deletions up to this revision may have been forgotten.
    forgotten: i64,
    /// The watch reports every deletion after this revision.
    watched: Option<i64>,
}

#[derive(Debug)]
struct Mine<M> {
    /// The last revision at which a list had it.
    seen: i64,
    covered: bool,
    what: M,
}

impl<M> Default for Queue<M> {
    fn default() -> Self {
        Self {
            live: HashMap::new(),
            order: BTreeMap::new(),
            mine: BTreeMap::new(),
            deleted: VecDeque::new(),
            forgotten: 0,
            watched: None,
        }
    }
}

impl<M> Queue<M> {
    /// Adds an attempt of ours, with the entries before it.
    pub(crate) fn enter(&mut self, own: Place, before: Vec<Place>, what: M) {
        let revision = own.revision;
        let covered =
            self.watched.is_some_and(|from| from <= revision) && self.forgotten <= revision;
        for place in before {
            let deleted =
                self.deleted.iter().any(|(key, at)| *at > place.revision && *key == place.key);
            if !deleted {
                self.insert(place);
            }
        }
        let deleted = self.deleted.iter().any(|(key, at)| *at > revision && *key == own.key);
        if !deleted {
            self.insert(own);
        }
        self.mine.insert(revision, Mine { seen: revision, covered, what });
    }

    fn insert(&mut self, place: Place) {
        let known = self.live.get(&place.key).copied();
        if known.is_some_and(|known| known >= place.revision) {
            return;
        }
        if let Some(known) = known {
            // The key was deleted and made again: the entry that we knew is gone.
            self.forget_place(known);
        }
        *self.order.entry(place.revision).or_default() += 1;
        self.live.insert(place.key, place.revision);
    }

    fn forget_place(&mut self, revision: i64) {
        if let Some(count) = self.order.get_mut(&revision) {
            *count -= 1;
            if *count == 0 {
                self.order.remove(&revision);
            }
        }
    }

    /// The watch began: it reports every deletion after `revision`.
    pub(crate) fn watch_began(&mut self, revision: i64) {
        self.watched = Some(revision);
        for mine in self.mine.values_mut() {
            mine.covered = mine.seen >= revision;
        }
    }

    /// The watch ended: deletions may go unnoticed from now on.
    pub(crate) fn watch_ended(&mut self) {
        self.watched = None;
        self.deleted.clear();
        self.forgotten = 0;
        for mine in self.mine.values_mut() {
            mine.covered = false;
        }
    }

    /// The watch reported a deletion. Judge only after all deletions of one message.
    pub(crate) fn deleted(&mut self, key: &[u8], at: i64) {
        if let Some(revision) = self.live.get(key).copied().filter(|revision| *revision < at) {
            self.live.remove(key);
            self.forget_place(revision);
        }
        if self.deleted.len() == REMEMBERED
            && let Some((_, at)) = self.deleted.pop_front()
        {
            self.forgotten = at;
        }
        self.deleted.push_back((key.to_vec(), at));
    }

    /// The whole queue at a revision.
    pub(crate) fn listed(&mut self, at: i64, places: &[Place]) {
        let present: HashMap<&[u8], i64> =
            places.iter().map(|place| (place.key.as_slice(), place.revision)).collect();
        let order = &mut self.order;
        self.live.retain(|key, revision| {
            let stays = *revision > at || present.get(key.as_slice()) == Some(revision);
            if !stays && let Some(count) = order.get_mut(revision) {
                *count -= 1;
                if *count == 0 {
                    order.remove(revision);
                }
            }
            stays
        });
        let covers = self.watched.is_some_and(|from| from <= at) && self.forgotten <= at;
        for (revision, mine) in &mut self.mine {
            if at >= mine.seen && self.order.contains_key(revision) {
                mine.seen = at;
                mine.covered |= covers;
            }
        }
    }

    /// Ours that have lost their entry.
    pub(crate) fn take_gone(&mut self) -> Vec<M> {
        let gone = |revision: &i64| !self.order.contains_key(revision);
        let gone: Vec<i64> = self.mine.keys().copied().filter(gone).collect();
        gone.iter().filter_map(|revision| self.mine.remove(revision)).map(|m| m.what).collect()
    }

    /// Ours, if it is at the head for sure: it is covered, or a list at `listed_at` had it.
    pub(crate) fn head(&mut self, listed_at: Option<i64>) -> Option<&mut M> {
        let revision = *self.order.first_key_value()?.0;
        let mine = self.mine.get_mut(&revision)?;
        (mine.covered || listed_at == Some(mine.seen)).then_some(&mut mine.what)
    }

    /// What we know of an attempt of ours.
    pub(crate) fn get_mut(&mut self, revision: i64) -> Option<&mut M> {
        self.mine.get_mut(&revision).map(|mine| &mut mine.what)
    }

    /// All of ours.
    pub(crate) fn mine(&self) -> impl Iterator<Item = &M> {
        self.mine.values().map(|mine| &mine.what)
    }

    /// Whether a list is needed before the watch can be relied on.
    pub(crate) fn wants_list(&self) -> bool {
        self.watched.is_some() && self.mine.values().any(|mine| !mine.covered)
    }

    /// An attempt of ours is over. Its entry stays until the watch says that it is gone.
    pub(crate) fn leave(&mut self, revision: i64) -> Option<M> {
        let mine = self.mine.remove(&revision)?;
        if self.mine.is_empty() {
            // What others do here does not matter until one of ours comes again.
            self.live.clear();
            self.order.clear();
        }
        Some(mine.what)
    }

    /// Ours gave the lock back, and its deletion is on its way. The next one need not wait for that
    /// if it is ours, too.
    pub(crate) fn released(&mut self, revision: i64, key: &[u8]) {
        if self.live.get(key) == Some(&revision) {
            self.live.remove(key);
            self.forget_place(revision);
        }
        self.leave(revision);
    }

    /// Whether none of ours is in it.
    pub(crate) fn is_idle(&self) -> bool {
        self.mine.is_empty()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
