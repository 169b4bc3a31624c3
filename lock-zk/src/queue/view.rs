//! The order of the queue, and which entry an attempt waits for. Pure; the rule is lock-core's.

use lock_core::queue::{Kind, Verdict, admitted, judge, other_limit};

use crate::{
    layout::{child, listing::in_order, note::Became},
    session::attempt::News,
};

/// Stands for all entries that may be before the only known one. It counts as exclusive, and nothing
/// tells of its end: only a list, or a holder behind it that has passed the lock on.
pub(crate) const UNKNOWN: &str = "";

/// An attempt's view of the entries before it. Entries only ever leave, so an old view may
/// delay the attempt but never admits it wrongly.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    mine: Kind,
    names: Vec<String>,
    kinds: Vec<Kind>,
    followed: bool,
    /// The entry that shares the lock by now, which its name does not tell.
    shared: Option<String>,
    /// The entry that holds its permits by now, which its name does not tell.
    admitted: Option<String>,
}

/// The next step of an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Duty {
    /// It holds the lock.
    Hold,
    /// It waits until the entry at this index is gone or lets it in otherwise. It cannot enter
    /// before, and no other entry needs to wake it.
    After(usize),
    /// It waits to become the first waiter for permits: until the entry at this index, which is
    /// right before it and waits too, holds its permits or is gone. So a release wakes one waiter
    /// for permits, and not all.
    AfterAdmission(usize),
    /// It is the first waiter, and any departure before it may give it enough permits.
    AfterAny,
}

/// The next step of a waiter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    /// Judge again by what it knows.
    Judge,
    /// Look at the directory.
    Look,
}

impl Ahead {
    /// No entry is known so far.
    pub(crate) fn new(mine: Kind) -> Self {
        let (names, kinds) = (Vec::new(), Vec::new());
        Self { mine, names, kinds, followed: false, shared: None, admitted: None }
    }

    /// Takes in the only known entry, which is exclusive like the own one, and right before it. The
    /// own one may enter once that one has held the lock and passed it on, since nothing else was
    /// before it then. If it ends in another way, others may still be before the two.
    pub(crate) fn see_only(&mut self, before: &str) {
        self.replace(vec![UNKNOWN.to_owned(), before.to_owned()]);
    }

    /// Takes in the entries of the directory. Returns whether the own entry is there.
    pub(crate) fn see(&mut self, children: Vec<String>, own: &str, mine: i32) -> bool {
        self.followed = false;
        let mut found = false;
        let mut before = Vec::new();
        for child in children {
            if child == own {
                found = true;
                continue;
            }
            // Wraps like the server's counter. A foreign entry with my number counts as before me.
            let distance = child::sequence(&child).map(|s| s.wrapping_sub(mine));
            match distance {
                Some(1..) => self.followed = true,
                Some(distance) => before.push((distance, child)),
                None => {}
            }
        }
        before.sort_unstable_by_key(|(distance, _)| *distance);
        self.replace(before.into_iter().map(|(_, child)| child).collect());
        found
    }

    /// Takes in the entries of a directory in which the attempt has none yet.
    pub(crate) fn see_all(&mut self, children: Vec<String>) {
        self.replace(in_order(children));
    }

    fn replace(&mut self, names: Vec<String>) {
        let kind = |name: &String| match self.shared.as_ref() == Some(name) {
            true => Kind::Shared,
            false => child::kind(name),
        };
        self.kinds = names.iter().map(kind).collect();
        self.names = names;
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// How many entries are before the own one, if that is known.
    pub(crate) fn place(&self) -> Option<usize> {
        let is_known = self.names.first().is_none_or(|first| first != UNKNOWN);
        is_known.then_some(self.names.len())
    }

    /// Whether an entry stood behind the own one when the directory was seen.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed
    }

    /// Returns the number of permits that other entries count with, if it differs.
    ///
    /// The first entry for permits sets it: any other entry with another number is about to be
    /// refused, too.
    pub(crate) fn other_limit(&self) -> Option<u32> {
        let first = self.kinds.iter().find(|kind| matches!(kind, Kind::Permit { .. }));
        other_limit(first.copied(), self.mine)
    }

    pub(crate) fn duty(&self) -> Duty {
        // An entry that excludes mine must go first, and so must all entries that it waits for.
        let last = self.kinds.iter().rposition(|other| excludes(*other, self.mine));
        let rest = &self.kinds[last.map_or(0, |i| i + 1)..];
        if judge(rest, self.mine) == Verdict::Admitted {
            return last.map_or(Duty::Hold, Duty::After);
        }
        let all_hold = admitted(self.kinds.iter().copied()) == self.kinds.len();
        match all_hold || self.admitted.as_ref() == self.names.last() {
            true => Duty::AfterAny,
            false => Duty::AfterAdmission(self.names.len() - 1),
        }
    }

    /// The next step after this news of an entry, which the view has taken in. Whether the entry is
    /// of this client, and whether the own node is certainly there.
    pub(crate) fn next_after(
        &self,
        news: News,
        is_own: bool,
        is_there: impl FnOnce() -> bool,
    ) -> Next {
        let goes_on = match self.duty() {
            // If this client itself has passed the lock on, nothing suggests that nodes are being
            // removed. Otherwise the own node may have been removed just before, and the task that
            // hears of that may not have run yet.
            Duty::Hold => (is_own && news != News::Gone) || is_there(),
            // The view may be old; to walk back through it in memory costs nothing.
            _ => is_own || matches!(news, News::Became(_)),
        };
        if goes_on { Next::Judge } else { Next::Look }
    }

    /// Takes in the news of an entry. One that has ended is removed, and with it all entries that
    /// must be gone, too.
    pub(crate) fn learn(&mut self, name: &str, news: News) {
        let Some(index) = self.names.iter().position(|other| other == name) else { return };
        match news {
            News::Became(Became::Shared) => {
                (self.shared, self.kinds[index]) = (Some(name.to_owned()), Kind::Shared);
            }
            News::Became(Became::Admitted) => self.admitted = Some(name.to_owned()),
            News::Gone => self.remove(index),
            News::Passed => {
                self.remove(index);
                self.remove_outlasted(child::kind(name), index);
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.names.remove(index);
        self.kinds.remove(index);
    }

    /// Removes the entries for which one that stood at `index` and held the lock had to wait: they
    /// were gone by then.
    fn remove_outlasted(&mut self, held: Kind, index: usize) {
        let outlasted = |other: Kind| match held {
            // An exclusive entry before a reader that holds has not gone but become shared.
            Kind::Shared => matches!(other, Kind::Permit { .. }),
            _ => excludes(other, held),
        };
        for i in (0..index).rev() {
            if outlasted(self.kinds[i]) {
                self.remove(i);
            }
        }
    }
}

/// Whether two entries can never hold the lock together.
fn excludes(other: Kind, mine: Kind) -> bool {
    judge(&[other], mine) != Verdict::Admitted || other_limit([other], mine).is_some()
}

#[cfg(test)]
#[path = "partial_tests.rs"]
mod partial_tests;
#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
