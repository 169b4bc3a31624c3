//! The rules.

mod exclusion;
mod fence;
mod gap;
mod order;
mod told;

use std::{collections::BTreeMap, time::Duration};

use crate::{Attempt, Class, Classed, Fault, History, Loss, Misfit, Report, Summary, Violation};

/// Longest time from the next grant to the store's report of the loss to the holder.
const TOLD_WITHIN: Duration = Duration::from_millis(100);

/// How strictly a store promises that tokens increase.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Grade {
    /// They always increase.
    #[default]
    Strict,
    /// They increase, except in documented cases: these are reported as a class.
    BestEffort,
    /// There is no promise: not checked.
    None,
}

/// Checks histories. Every rule takes O(n log n) time for n events.
#[derive(Clone, Debug)]
pub struct Checker {
    grade: Grade,
    early: Duration,
    gap: Option<Duration>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { grade: Grade::Strict, early: Duration::ZERO, gap: None }
    }
}

impl Checker {
    /// A checker with the strictest promises, but without the gap check.
    pub fn new() -> Self {
        Self::default()
    }

    /// How strictly tokens increase. Default: strictly.
    pub fn tokens(mut self, grade: Grade) -> Self {
        self.grade = grade;
        self
    }

    /// Longest time for which two clients may certainly hold a lock after the store itself ended
    /// the first hold. For stores with documented early ends. Default: zero.
    pub fn ended_early(mut self, by: Duration) -> Self {
        self.early = by;
        self
    }

    /// Longest time for which a free lock may stay free while an attempt waits: the TTL, the
    /// store's time to notice a holder's end, and its recovery time after a fault. Time during a
    /// fault does not count. Default: not checked.
    pub fn gap(mut self, bound: Duration) -> Self {
        self.gap = Some(bound);
        self
    }

    /// Checks a history.
    ///
    /// [`Misfit`]: an event stands where it cannot have happened.
    pub fn check(&self, history: &History) -> Result<Report, Misfit> {
        let attempts = history.attempts()?;
        let mut report =
            Report { summary: Summary::of(&attempts, &history.faults), ..Report::default() };
        let end = history.events.iter().map(|event| event.at).max().unwrap_or_default();
        let busy = gap::united(&history.faults, end);
        for attempts in by_name(&attempts).values() {
            let found = exclusion::check(attempts)
                .chain(self.order(attempts))
                .chain(told::check(attempts))
                .chain(fence::check(attempts));
            found.for_each(|violation| self.judge(violation, &history.faults, &mut report));
            if let Some(gap) = gap::longest(attempts, &busy, end) {
                let length = gap.by().unwrap_or_default();
                report.summary.longest_gap = report.summary.longest_gap.max(length);
                if self.gap.is_some_and(|bound| length > bound) {
                    report.violations.push(gap);
                }
            }
        }
        Ok(report)
    }

    fn order(&self, attempts: &[&Attempt]) -> impl Iterator<Item = Violation> {
        let checked = (self.grade != Grade::None).then(|| order::check(attempts));
        checked.into_iter().flatten()
    }

    fn judge(&self, violation: Violation, faults: &[Fault], report: &mut Report) {
        match self.class(&violation, faults) {
            Some(class) => report.classed.push(Classed { class, event: violation }),
            None => report.violations.push(violation),
        }
    }

    fn class(&self, violation: &Violation, faults: &[Fault]) -> Option<Class> {
        match violation {
            Violation::Overlap { first, second, by } => ended(first, second, *by, self.early),
            Violation::ToldLate { told, next, by } => ended(told, next, *by, TOLD_WITHIN)
                .or_else(|| stood_still(told, next, faults).then_some(Class::Standstill)),
            Violation::TokenOrder { .. } if self.grade == Grade::BestEffort => {
                Some(Class::BestEffort)
            }
            _ => None,
        }
    }
}

fn by_name(attempts: &[Attempt]) -> BTreeMap<&str, Vec<&Attempt>> {
    let mut names: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        names.entry(&attempt.name).or_default().push(attempt);
    }
    names
}

/// Whether the store or an operator ended the earlier hold, and how late that report may come.
fn ended(first: &Attempt, next: &Attempt, by: Duration, tolerated: Duration) -> Option<Class> {
    if first.revoked.is_some_and(|at| next.granted.is_some_and(|granted| at <= granted)) {
        return Some(Class::Revoked);
    }
    let said = first.lost.as_ref().is_some_and(|lost| lost.loss == Loss::Store);
    (said && by <= tolerated).then_some(Class::StoresWord)
}

/// Whether the client stood still at some time between the next grant and the report of its loss.
fn stood_still(told: &Attempt, next: &Attempt, faults: &[Fault]) -> bool {
    let (Some(from), Some(until)) = (next.granted, told.told()) else { return false };
    faults.iter().any(|fault| {
        fault.fault == Fault::STANDSTILL
            && *fault.target == *told.client
            && fault.from <= until
            && fault.until.is_none_or(|end| end >= from)
    })
}
