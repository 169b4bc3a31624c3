//! A free lock is granted to a waiter in time.

use std::collections::BTreeSet;

use crate::{Attempt, Fault, Violation};

/// A span of time: from, until.
type Span = (u64, u64);

/// A change of a name's state.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Change {
    /// A hold ends.
    Free,
    /// An attempt begins to wait.
    Waits(usize),
    /// An attempt stops waiting.
    Leaves(usize),
    /// A hold begins.
    Held,
}

/// Merges the times of all faults into ordered spans that do not touch. An unhealed fault lasts
/// until `end`.
pub(super) fn united(faults: &[Fault], end: u64) -> Vec<Span> {
    let span = |fault: &Fault| (fault.from, fault.until.unwrap_or(end).max(fault.from));
    let mut spans: Vec<Span> = faults.iter().map(span).collect();
    spans.sort_unstable();
    let mut united: Vec<Span> = Vec::new();
    for (from, until) in spans {
        match united.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => united.push((from, until)),
        }
    }
    united
}

/// Finds the longest time for which the lock was free, an attempt waited and no fault lasted.
pub(super) fn longest(attempts: &[&Attempt], busy: &[Span], end: u64) -> Option<Violation> {
    let (mut waiting, mut holds) = (BTreeSet::new(), 0_i64);
    let (mut since, mut longest) = (None, None);
    for (at, change) in in_order(attempts, end) {
        let first = waiting.first().copied();
        match change {
            Change::Free => holds -= 1,
            Change::Held => holds += 1,
            Change::Waits(place) => drop(waiting.insert(place)),
            Change::Leaves(place) => drop(waiting.remove(&place)),
        }
        // In the order of changes, a hold of zero length ends before it begins.
        let idle = holds <= 0 && !waiting.is_empty();
        // A grant ends the gap, even if its hold has zero length.
        if change == Change::Held || !idle {
            longest = longest.max(ended(since.take(), at, busy).zip(first));
        }
        if idle && since.is_none() {
            since = Some(at);
        }
    }
    let ((length, until), waiter) = longest?;
    Some(Violation::Gap { from: until - length, until, waiter: attempts[waiter].clone() })
}

/// All changes, in order of time.
fn in_order(attempts: &[&Attempt], end: u64) -> Vec<(u64, Change)> {
    let each = attempts.iter().enumerate();
    let mut changes: Vec<_> = each.flat_map(|(place, one)| changes(place, one, end)).collect();
    changes.sort_unstable();
    changes
}

fn changes(place: usize, one: &Attempt, end: u64) -> Vec<(u64, Change)> {
    let leaves = one.granted.or(one.ended.as_ref().map(|(at, _)| *at)).unwrap_or(end);
    let mut changes = vec![(one.asked, Change::Waits(place)), (leaves, Change::Leaves(place))];
    if let Some(granted) = one.granted {
        let over = one.over().unwrap_or(one.last).max(granted);
        changes.extend([(granted, Change::Held), (over, Change::Free)]);
    }
    changes
}

/// The longest part of a span without faults: its length and its end.
fn ended(since: Option<u64>, at: u64, busy: &[Span]) -> Option<Span> {
    let mut from = since?;
    let first = busy.partition_point(|(_, until)| *until <= from);
    let mut longest = None;
    for (fault, healed) in busy[first..].iter().take_while(|(fault, _)| *fault < at) {
        longest = longest.max((from < *fault).then(|| (fault - from, *fault)));
        from = *healed;
    }
    longest.max((from < at).then(|| (at - from, at)))
}
