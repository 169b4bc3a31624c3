//! One client's view of the queue of one name. Pure: no I/O, no clock.
//!
//! A name's queue is the entries under its prefix, in order of their create revision. The [queue
//! rule](lock_core::queue) says which of them hold the lock. A client sees the queue in two ways:
//!
//! - **lists**: the entries before an attempt's own as the acquiring transaction saw them, and
//!   later the queue at some revision. A list is exact, but may have only the last entries.
//! - **deletions** from watches of the name or of a key. A late or lost one delays a waiter, but
//!   never admits one wrongly.
//!
//! The set of entries before mine only shrinks, and an entry's kind changes at most once, from
//! exclusive to shared. So the transaction's list minus the deletions is all that a waiter needs:
//! it admits only waiters that the store would admit. An entry that a later list lacks is gone for
//! good (a key that was deleted and made again has another create revision, and is another entry).
//!
//! An attempt is *covered* when the watch cannot have missed a deletion since the attempt was last
//! seen in a list. Only then may a deletion make it a holder: otherwise its own key may be gone
//! unnoticed. If it is covered, the same watch would have reported that in the same or an earlier
//! message.
//!
//! A list of the last entries before an attempt admits nothing: others may stand before these. The
//! attempt is *known* when the view has all entries before it: by a list that goes back to the head
//! of the queue, or by one that goes back behind a known attempt. It stays known, since that set
//! only shrinks, until a list does not go back so far: the view would keep entries that are gone.
//! Attempts up to one revision are known: what is known before one is known before all earlier
//! ones.
//!
//! The deletion of a *signal* reports that an entry has become shared, and a list shows which.

use std::collections::{HashMap, VecDeque};

use lock_core::queue::{self, Kind};

use crate::layout::{
    keys::{Role, role},
    listing::{Before, Listed, QueueEntry},
};

/// How many deletions are remembered for acquiring transactions that are still under way. If there
/// are more meanwhile, the attempt asks for a list.
const REMEMBERED: usize = 256;

/// How many attempts of ours a far name may have: each has a watch of its key. The watch of the
/// queue costs less than many of them.
const FEW: usize = 4;

/// The queue of one name as far as this client's own attempts need it.
///
/// Sorted deques instead of trees: entries come at the end and go at the front, and a process may
/// hold 10,000 names with one entry each.
pub(crate) struct Queue<M> {
    /// Live entries up to the last of ours, by key.
    live: HashMap<Vec<u8>, i64>,
    /// Their create revisions, sorted, and kinds. A foreign transaction may have made two entries
    /// at once.
    order: VecDeque<(i64, Kind)>,
    /// Our attempts, sorted by revision.
    mine: VecDeque<Own<M>>,
    /// All entries before our attempts up to this revision are in `order`, or gone.
    known: i64,
    /// Our attempts that have lost their entry.
    gone: Vec<M>,
    /// The last deletions that watches told, also those of single keys.
    deleted: VecDeque<(Vec<u8>, i64)>,
    /// Deletions up to this revision may have been forgotten.
    forgotten: i64,
    /// The watch reports every deletion after this revision.
    watched: Option<i64>,
    /// Revision of the last signal: an entry had become shared by then.
    signalled: i64,
}

struct Own<M> {
    revision: i64,
    /// The last revision at which a list had it.
    seen: i64,
    covered: bool,
    /// Whether it entered to wait. A hold that never waited need not be known.
    waits: bool,
    /// How many entries were before it when it entered, if that is known.
    ahead: Option<usize>,
    what: M,
}

impl<M> Default for Queue<M> {
    fn default() -> Self {
        Self {
            live: HashMap::new(),
            order: VecDeque::new(),
            mine: VecDeque::new(),
            known: 0,
            gone: Vec::new(),
            deleted: VecDeque::new(),
            forgotten: 0,
            watched: None,
            signalled: 0,
        }
    }
}

impl<M> Queue<M> {
    /// Adds an attempt of ours, with the entries before it; `None` for a hold that never waited.
    /// Its entry still stood at the revision `seen`.
    pub(crate) fn enter(&mut self, seen: i64, own: QueueEntry, before: Option<Before>, what: M) {
        // Entries known from before may be gone: no attempt of ours was there to notice.
        self.forget_if_idle();
        let revision = own.revision;
        let covered = self.covers(seen);
        let replaced = self.live.get(&own.key).is_some_and(|known| *known > revision);
        if replaced || self.was_deleted_since(revision, &own.key) {
            // The entries before it are dropped: some of them may be gone unnoticed.
            return self.gone.push(what);
        }
        let waits = before.is_some();
        let ahead = before.as_ref().and_then(|before| before.count);
        let is_known = match &before {
            Some(before) => self.completes(before),
            // It held the lock alone.
            None => own.kind == Kind::Exclusive,
        };
        for entry in before.into_iter().flat_map(|before| before.entries) {
            if !self.was_deleted_since(revision, &entry.key) {
                self.insert(entry);
            }
        }
        self.insert(own);
        let at = self.mine.partition_point(|mine| mine.revision < revision);
        self.mine.reserve_exact(usize::from(self.mine.is_empty()));
        self.mine.insert(at, Own { revision, seen, covered, waits, ahead, what });
        if is_known {
            self.known = self.known.max(revision);
        }
    }

    /// Whether these and the known entries are all before an attempt. A foreign transaction may
    /// have made several entries in one revision, but none in that of an attempt of ours.
    fn completes(&self, before: &Before) -> bool {
        let lowest = before.entries.iter().map(|entry| entry.revision).min();
        !before.more || lowest.is_some_and(|lowest| lowest <= self.known)
    }

    /// Whether a watch has told the deletion of this key after this revision.
    fn was_deleted_since(&self, revision: i64, key: &[u8]) -> bool {
        self.deleted.iter().any(|(deleted, at)| *at > revision && deleted == key)
    }

    /// Whether the watch tells every deletion after this revision, and none of them is forgotten.
    pub(crate) fn covers(&self, revision: i64) -> bool {
        self.watched.is_some_and(|from| from <= revision) && self.forgotten <= revision
    }

    fn insert(&mut self, entry: QueueEntry) {
        let known = self.live.get(&entry.key).copied();
        if known.is_some_and(|known| known >= entry.revision) {
            return self.update(&entry);
        }
        if let Some(known) = known {
            // The key was deleted and made again: the known entry is gone.
            self.remove(known);
        }
        let at = self.order.partition_point(|(revision, _)| *revision < entry.revision);
        self.order.reserve_exact(usize::from(self.order.is_empty()));
        self.order.insert(at, (entry.revision, entry.kind));
        self.live.insert(entry.key, entry.revision);
    }

    /// Notes that a known entry is shared now. No entry becomes exclusive: a list that shows it so
    /// is older.
    pub(crate) fn update(&mut self, entry: &QueueEntry) {
        if entry.kind == Kind::Shared
            && self.live.get(&entry.key) == Some(&entry.revision)
            && let Some(at) = self.find(entry.revision)
        {
            self.order[at].1 = Kind::Shared;
        }
    }

    fn find(&self, revision: i64) -> Option<usize> {
        self.order.binary_search_by_key(&revision, |(revision, _)| *revision).ok()
    }

    /// Removes an entry that is gone. Its key is not `live` any more.
    fn remove(&mut self, revision: i64) {
        if let Some(at) = self.find(revision) {
            self.order.remove(at);
        }
        if let Some(mine) = self.take(revision) {
            self.gone.push(mine);
        }
    }

    fn take(&mut self, revision: i64) -> Option<M> {
        let at = self.position(revision)?;
        self.mine.remove(at).map(|mine| mine.what)
    }

    fn position(&self, revision: i64) -> Option<usize> {
        self.mine.binary_search_by_key(&revision, |mine| mine.revision).ok()
    }

    /// Notes that the watch began: it reports every deletion after `revision`.
    pub(crate) fn watch_began(&mut self, revision: i64) {
        self.watched = Some(revision);
        for mine in &mut self.mine {
            mine.covered = mine.seen >= revision;
        }
    }

    /// Notes that the watch ended: deletions may go unnoticed from now on.
    pub(crate) fn watch_ended(&mut self) {
        self.watched = None;
        for mine in &mut self.mine {
            mine.covered = false;
        }
    }

    /// Notes a deletion that the watch reported. Judge only after all deletions of one message.
    pub(crate) fn deleted(&mut self, key: &[u8], at: i64) {
        match role(key) {
            Role::Mark => return,
            Role::Signal => return self.signalled = at,
            _ => {}
        }
        if let Some(revision) = self.live.get(key).copied().filter(|revision| *revision < at) {
            self.live.remove(key);
            self.remove(revision);
        }
        if self.deleted.len() == REMEMBERED
            && let Some((_, at)) = self.deleted.pop_front()
        {
            self.forgotten = self.forgotten.max(at);
        }
        self.deleted.push_back((key.to_vec(), at));
    }

    /// Takes a list of the queue at a revision.
    pub(crate) fn listed(&mut self, list: &Listed) {
        let Listed { revision: at, entries, range, gone } = list;
        let present: HashMap<&[u8], i64> =
            entries.iter().map(|entry| (entry.key.as_slice(), entry.revision)).collect();
        let is_gone = |key: &Vec<u8>, revision: &mut i64| {
            gone.contains(&*revision)
                || *revision <= *at
                    && range.contains(&*revision)
                    && present.get(key.as_slice()) != Some(revision)
        };
        let gone: Vec<i64> = self.live.extract_if(is_gone).map(|(_, revision)| revision).collect();
        gone.into_iter().for_each(|revision| self.remove(revision));
        entries.iter().for_each(|entry| self.update(entry));
        self.learn(list);
        let covers = self.covers(*at);
        let listed = |mine: &&mut Own<M>| mine.seen <= *at && range.contains(&mine.revision);
        for mine in self.mine.iter_mut().filter(listed) {
            mine.seen = *at;
            mine.covered |= covers;
        }
    }

    /// Takes the entries before our attempts that are not known yet, or not any more.
    fn learn(&mut self, list: &Listed) {
        let listed =
            |mine: &&Own<M>| mine.seen <= list.revision && list.range.contains(&mine.revision);
        let Some(last) = self.mine.iter().rfind(listed).map(|mine| mine.revision) else { return };
        if last <= self.known && list.has_the_head() {
            return;
        }
        for entry in list.entries.iter().filter(|entry| entry.revision < last) {
            if !self.was_deleted_since(list.revision, &entry.key) {
                self.insert(entry.clone());
            }
        }
        // Of the entries before these, some that were known may be gone unnoticed.
        self.known = if list.has_the_head() { last } else { 0 };
    }

    /// Our attempts that have lost their entry.
    pub(crate) fn take_gone(&mut self) -> Vec<M> {
        std::mem::take(&mut self.gone)
    }

    /// Our attempts that certainly hold the lock: all entries before them are known, the rule
    /// admits them, and they are covered, or a list at `listed_at` had them.
    pub(crate) fn admitted(&mut self, listed_at: Option<i64>) -> impl Iterator<Item = &mut M> {
        let admitted = queue::admitted(self.order.iter().map(|(_, kind)| *kind));
        let last = admitted.checked_sub(1).map_or(0, |last| self.order[last].0).min(self.known);
        self.mine
            .iter_mut()
            .take_while(move |mine| mine.revision <= last)
            .filter(move |mine| mine.covered || listed_at == Some(mine.seen))
            .map(|mine| &mut mine.what)
    }

    /// Returns an attempt of ours.
    pub(crate) fn get_mut(&mut self, revision: i64) -> Option<&mut M> {
        let at = self.position(revision)?;
        self.mine.get_mut(at).map(|mine| &mut mine.what)
    }

    /// All our attempts, to be changed.
    pub(crate) fn mine_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.mine.iter_mut().map(|mine| &mut mine.what)
    }

    /// All our attempts.
    pub(crate) fn mine(&self) -> impl Iterator<Item = &M> {
        self.mine.iter().map(|mine| &mine.what)
    }

    /// The key of the first in line, if it is known.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        let (first, _) = self.order.front().filter(|(first, _)| *first <= self.known)?;
        self.key(*first)
    }

    /// The key of the entry with this create revision.
    fn key(&self, revision: i64) -> Option<&[u8]> {
        let mut keys = self.live.iter();
        keys.find(|(_, known)| **known == revision).map(|(key, _)| key.as_slice())
    }

    /// All our attempts, with their places: 0 for the holders, 1 for the first that waits. The
    /// place of one that is not known is that from when it entered.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&M, usize)> {
        let admitted = queue::admitted(self.order.iter().map(|(_, kind)| *kind));
        let place = move |mine: &Own<M>| match mine.waits && mine.revision > self.known {
            true => mine.ahead,
            false => Some((self.find(mine.revision)? + 1).saturating_sub(admitted)),
        };
        self.mine.iter().filter_map(move |mine| Some((&mine.what, place(mine)?)))
    }

    /// The create revision of our first attempt, if it is exclusive, and our only one or not known
    /// yet: the entries before it are all that matters, and no matter which kind they have.
    pub(crate) fn up_to(&self) -> Option<i64> {
        let first = self.mine.front()?.revision;
        let (_, kind) = self.order[self.find(first)?];
        let is_enough = self.mine.len() == 1 || self.is_far(first);
        (kind == Kind::Exclusive && is_enough).then_some(first)
    }

    /// Whether our first attempt may be far behind, and there are few others.
    fn is_far(&self, first: i64) -> bool {
        first > self.known && self.mine.len() <= FEW
    }

    /// The key of the last entry but so many before the first of our attempts, as far as it is
    /// seen. `None` if an attempt is known, or holds, or if there are many.
    pub(crate) fn bell(&self, ahead: usize) -> Option<&[u8]> {
        let first = self.mine.front().filter(|first| self.is_far(first.revision))?.revision;
        let all_wait = self.mine.iter().all(|mine| mine.waits);
        let last = self.find(first).filter(|_| all_wait)?.checked_sub(1)?;
        self.key(self.order[last.saturating_sub(ahead)].0)
    }

    /// The create revision of the entry with this key, if it is seen.
    pub(crate) fn revision(&self, key: &[u8]) -> Option<i64> {
        self.live.get(key).copied()
    }

    /// Whether the bell may be gone by this revision: something has changed since it was seen. With
    /// `ahead`, the entries go in order, and as many revisions have passed since our first attempt
    /// entered as entries stood up to the bell.
    pub(crate) fn may_ring_by(&self, revision: i64, ahead: Option<usize>) -> bool {
        let Some(first) = self.mine.front() else { return false };
        let up_to_it = match (first.ahead, ahead) {
            (Some(all), Some(ahead)) if first.seen == first.revision => all.saturating_sub(ahead),
            _ => 1,
        };
        usize::try_from(revision - first.seen).is_ok_and(|passed| passed >= up_to_it)
    }

    /// The keys and create revisions of our attempts, first one first.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.mine.iter().filter_map(move |mine| Some((self.key(mine.revision)?, mine.revision)))
    }

    /// Whether a list is needed before the watch can be relied on.
    pub(crate) fn wants_list(&self) -> bool {
        let unsure = |mine: &Own<M>| !mine.covered || mine.seen < self.signalled;
        // A list for the first one, or a later attempt's, makes those behind it known.
        let first = self.mine.iter().find(|mine| mine.waits);
        let is_unknown = first.is_some_and(|first| first.revision > self.known);
        self.watched.is_some() && (is_unknown || self.mine.iter().any(unsure))
    }

    /// Removes an attempt of ours that is over. Its entry stays until the watch reports its
    /// deletion.
    pub(crate) fn leave(&mut self, revision: i64) -> Option<M> {
        let what = self.take(revision);
        self.forget_if_idle();
        what
    }

    /// Forgets all entries if no attempt of ours is left: changes do not matter until the next one.
    fn forget_if_idle(&mut self) {
        if self.mine.is_empty() {
            self.live.clear();
            self.order.clear();
            self.known = 0;
        }
    }

    /// Notes that an attempt of ours gave the lock back. Its deletion is on its way, and our
    /// attempts that this admits need not wait for it.
    pub(crate) fn released(&mut self, revision: i64, key: &[u8]) {
        self.take(revision);
        if self.live.get(key) == Some(&revision) {
            self.live.remove(key);
            self.remove(revision);
        }
        self.leave(revision);
    }

    /// Whether it has no attempt of ours.
    pub(crate) fn is_idle(&self) -> bool {
        self.mine.is_empty()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
