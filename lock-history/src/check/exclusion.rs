//! Certain holds that exclude each other do not overlap.

use std::{collections::BTreeSet, time::Duration};

use crate::{Attempt, Kind, Violation};

/// A certain hold: from, until, and its place in the list.
type Hold = (u64, u64, usize);

/// The certain holds at one time, sorted by their end.
#[derive(Default)]
struct Held {
    exclusive: BTreeSet<(u64, usize)>,
    shared: BTreeSet<(u64, usize)>,
    permits: BTreeSet<(u64, usize)>,
    sum: u64,
}

/// Finds at most one overlap and one excess of permits per grant.
pub(super) fn check(attempts: &[&Attempt]) -> std::vec::IntoIter<Violation> {
    let holds: Vec<Hold> = attempts
        .iter()
        .enumerate()
        .filter_map(|(place, one)| Some((one.granted?, one.sure_until()?, place)))
        .collect();
    let (mut held, mut found) = (Held::default(), Vec::new());
    for (starts, hold) in points(&holds) {
        if !starts {
            held.remove(hold, attempts);
            continue;
        }
        found.extend(held.overlap(hold, attempts));
        held.insert(hold, attempts);
        found.extend(held.excess(hold, attempts));
    }
    found.into_iter()
}

/// Starts and ends in order of time. An end comes before a start at the same time, except the end
/// of a hold of zero length: holds that only touch do not overlap.
fn points(holds: &[Hold]) -> Vec<(bool, Hold)> {
    let starts = holds.iter().map(|hold| ((hold.0, 1), (true, *hold)));
    let ends = holds.iter().map(|hold| {
        let own_start = if hold.0 == hold.1 { 2 } else { 0 };
        ((hold.1, own_start), (false, *hold))
    });
    let mut points: Vec<_> = starts.chain(ends).collect();
    points.sort_by_key(|(key, _)| *key);
    points.into_iter().map(|(_, point)| point).collect()
}

impl Held {
    fn of(&mut self, kind: Kind) -> &mut BTreeSet<(u64, usize)> {
        match kind {
            Kind::Exclusive => &mut self.exclusive,
            Kind::Shared => &mut self.shared,
            Kind::Permits { .. } => &mut self.permits,
        }
    }

    fn insert(&mut self, (_, until, place): Hold, attempts: &[&Attempt]) {
        self.sum += permits(attempts[place]);
        self.of(attempts[place].kind).insert((until, place));
    }

    fn remove(&mut self, (_, until, place): Hold, attempts: &[&Attempt]) {
        self.sum -= permits(attempts[place]);
        self.of(attempts[place].kind).remove(&(until, place));
    }

    /// The overlap of a new hold with the one that excludes it for the longest time.
    fn overlap(&self, (from, until, place): Hold, attempts: &[&Attempt]) -> Option<Violation> {
        let second = attempts[place];
        let others = [&self.exclusive, &self.shared, &self.permits].into_iter().filter_map(|set| {
            set.iter().rev().find(|(end, other)| {
                let other = attempts[*other];
                other.kind.excludes(second.kind) && from < *end && other.granted < Some(until)
            })
        });
        let (end, first) = others.max()?;
        let by = Duration::from_nanos(until.min(*end) - from);
        let (first, second) = (attempts[*first].clone(), second.clone());
        Some(Violation::Overlap { first, second, by })
    }

    fn excess(&self, (_, _, place): Hold, attempts: &[&Attempt]) -> Option<Violation> {
        let Kind::Permits { limit, .. } = attempts[place].kind else { return None };
        if self.sum <= u64::from(limit) {
            return None;
        }
        let mut holders: Vec<Attempt> =
            self.permits.iter().map(|(_, place)| attempts[*place].clone()).collect();
        holders.sort_by_key(|holder| holder.granted);
        Some(Violation::TooMany { limit, held: self.sum, holders })
    }
}

fn permits(attempt: &Attempt) -> u64 {
    match attempt.kind {
        Kind::Permits { permits, .. } => u64::from(permits),
        _ => 0,
    }
}
