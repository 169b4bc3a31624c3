//! Result of a check.

use std::{fmt, time::Duration};

use crate::{Attempt, Fault, Rule, Violation};

/// Findings of a [`Checker`](crate::Checker) in a history.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// Apparent violations of a class that the store documents.
    pub classed: Vec<Classed>,
    /// Extent of the check.
    pub summary: Summary,
}

impl Report {
    /// Whether no promise is broken.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Number of violations of a rule.
    pub fn count(&self, rule: Rule) -> usize {
        self.violations.iter().filter(|violation| violation.rule() == rule).count()
    }
}

/// An event of a documented class: not a violation, but reported.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Classed {
    /// Why it is not a violation.
    pub class: Class,
    /// The violation that it would be otherwise, with its figures.
    pub event: Violation,
}

/// Reason why an event is not a violation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Class {
    /// An operator took the lock away.
    Revoked,
    /// The store ended the lock early, and reported it within the tolerated time.
    StoresWord,
    /// The client's process stood still, and got the report as soon as it continued.
    Standstill,
    /// The store grades its tokens as best effort.
    BestEffort,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revoked => "revoked by an operator",
            Self::StoresWord => "ended by the store",
            Self::Standstill => "the process stood still",
            Self::BestEffort => "best effort",
        })
    }
}

/// Extent of the check.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Attempts.
    pub asked: usize,
    /// Attempts that were granted.
    pub granted: usize,
    /// Grants that were certain for some time.
    pub certain: usize,
    /// Grants that were lost.
    pub lost: usize,
    /// Attempts that ended without a grant.
    pub in_vain: usize,
    /// Writes that the resource accepted.
    pub written: usize,
    /// Writes that the resource refused.
    pub rejected: usize,
    /// Faults that were played.
    pub faults: usize,
    /// The longest time for which a free lock was not granted to a waiter.
    pub longest_gap: Duration,
}

impl Summary {
    pub(crate) fn of(attempts: &[Attempt], faults: &[Fault]) -> Self {
        let count = |is: fn(&Attempt) -> bool| attempts.iter().filter(|one| is(one)).count();
        let writes = |accepted| {
            let writes = attempts.iter().flat_map(|attempt| &attempt.writes);
            writes.filter(|write| write.accepted == accepted).count()
        };
        Self {
            asked: attempts.len(),
            granted: count(|one| one.granted.is_some()),
            certain: count(|one| one.sure_until().is_some()),
            lost: count(|one| one.lost.is_some()),
            in_vain: count(|one| one.granted.is_none() && one.ended.is_some()),
            written: writes(true),
            rejected: writes(false),
            faults: faults.iter().filter(|fault| fault.fault != Fault::STANDSTILL).count(),
            longest_gap: Duration::ZERO,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, granted, certain, lost, in_vain, .. } = self;
        let Self { written, rejected, faults, longest_gap, .. } = self;
        write!(f, "{asked} asked, {in_vain} in vain, {granted} granted ({certain} certain), ")?;
        write!(f, "{lost} lost, {written} writes, {rejected} rejected, {faults} faults, ")?;
        write!(f, "longest gap {longest_gap:.1?}")
    }
}

impl fmt::Display for Classed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) {}", self.class, self.event)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} violations", self.summary, self.violations.len())?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))?;
        self.classed.iter().try_for_each(|classed| write!(f, "\n{classed}"))
    }
}
