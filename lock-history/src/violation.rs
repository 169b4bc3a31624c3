//! Broken promises, with their evidence.

use std::{fmt, sync::Arc, time::Duration};

use crate::{Attempt, line::seconds};

/// A promise that a history can break.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Rule {
    /// An exclusive holder is alone. Permits and other kinds are never held together.
    Exclusion,
    /// No reader is beside a writer.
    Readers,
    /// The permits that are held are within their limit.
    Permits,
    /// A later grant has a greater token, and no two grants have the same.
    TokenOrder,
    /// A holder that loses a lock knows it before the next one is granted.
    ToldBeforeTheNext,
    /// The protected resource accepts no write with a smaller token after one with a greater token.
    Fence,
    /// A free lock is granted to a waiter within the bound.
    Gap,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusion => "exclusion",
            Self::Readers => "readers",
            Self::Permits => "permits",
            Self::TokenOrder => "token order",
            Self::ToldBeforeTheNext => "told before the next",
            Self::Fence => "fence",
            Self::Gap => "gap",
        })
    }
}

/// A broken promise.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// Two certain holds that exclude each other overlap.
    Overlap {
        /// The earlier grant.
        first: Attempt,
        /// The later grant.
        second: Attempt,
        /// Time for which both are certain.
        by: Duration,
    },
    /// The permits certainly held exceed the limit.
    TooMany {
        /// The limit.
        limit: u32,
        /// Permits held.
        held: u64,
        /// The holders, the latest last.
        holders: Vec<Attempt>,
    },
    /// A later grant has no greater token.
    TokenOrder {
        /// The earlier grant.
        earlier: Attempt,
        /// The later grant.
        later: Attempt,
    },
    /// A holder knew of its loss only after the next one was granted.
    ToldLate {
        /// The holder that lost the lock.
        told: Attempt,
        /// The next holder.
        next: Attempt,
        /// Time from the next grant to the report.
        by: Duration,
    },
    /// The protected resource accepted a stale write.
    StaleWrite {
        /// Time of the write in nanoseconds.
        at: u64,
        /// The token of the write.
        token: u64,
        /// The greatest token of an earlier accepted write.
        newest: u64,
        /// The writer.
        writer: Attempt,
    },
    /// A free lock was not granted to a waiter.
    Gap {
        /// Since when the lock was free, all faults were healed, and an attempt waited, in
        /// nanoseconds.
        from: u64,
        /// Until when that lasted, in nanoseconds.
        until: u64,
        /// The attempt that asked first among the attempts that waited at the end.
        waiter: Attempt,
    },
}

impl Violation {
    /// The rule that is broken.
    pub fn rule(&self) -> Rule {
        match self {
            Self::Overlap { first, second, .. } => match (first.kind, second.kind) {
                (crate::Kind::Shared, crate::Kind::Exclusive)
                | (crate::Kind::Exclusive, crate::Kind::Shared) => Rule::Readers,
                _ => Rule::Exclusion,
            },
            Self::TooMany { .. } => Rule::Permits,
            Self::TokenOrder { .. } => Rule::TokenOrder,
            Self::ToldLate { .. } => Rule::ToldBeforeTheNext,
            Self::StaleWrite { .. } => Rule::Fence,
            Self::Gap { .. } => Rule::Gap,
        }
    }

    /// The lock's name.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Overlap { second, .. } => &second.name,
            Self::TooMany { holders, .. } => &holders[0].name,
            Self::TokenOrder { later, .. } => &later.name,
            Self::ToldLate { told, .. } => &told.name,
            Self::StaleWrite { writer, .. } => &writer.name,
            Self::Gap { waiter, .. } => &waiter.name,
        }
    }

    /// The time span of the cause: from the first to the last event that the violation names, in
    /// nanoseconds.
    pub fn span(&self) -> (u64, u64) {
        let of = |first: &Attempt, last: &Attempt| {
            let from = first.granted.unwrap_or(first.asked);
            (from.min(last.asked), first.last.max(last.granted.unwrap_or(last.last)))
        };
        match self {
            Self::Overlap { first, second, .. } => of(first, second),
            Self::TooMany { holders, .. } => of(&holders[0], &holders[holders.len() - 1]),
            Self::TokenOrder { earlier, later } => of(earlier, later),
            Self::ToldLate { told, next, .. } => of(told, next),
            Self::StaleWrite { at, writer, .. } => (writer.asked, *at),
            Self::Gap { from, until, .. } => (*from, *until),
        }
    }

    /// Time by which the promise is broken, for promises about time.
    pub fn by(&self) -> Option<Duration> {
        match self {
            Self::Overlap { by, .. } | Self::ToldLate { by, .. } => Some(*by),
            Self::Gap { from, until, .. } => Some(Duration::from_nanos(until - from)),
            _ => None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}: ", self.rule(), self.name())?;
        match self {
            Self::Overlap { first, second, by } => {
                write!(f, "both hold it for {by:?}\n  {first}\n  {second}")
            }
            Self::TooMany { limit, held, holders } => {
                write!(f, "{held} permits of {limit} are held")?;
                holders.iter().try_for_each(|holder| write!(f, "\n  {holder}"))
            }
            Self::TokenOrder { earlier, later } => {
                write!(f, "the later grant has no greater token\n  {earlier}\n  {later}")
            }
            Self::ToldLate { told, next, by } => {
                write!(f, "told {by:?} after the next grant\n  {told}\n  {next}")
            }
            Self::StaleWrite { at, token, newest, writer } => {
                let at = seconds(*at);
                write!(f, "at {at} the resource took token {token} after {newest}\n  {writer}")
            }
            Self::Gap { from, until, waiter } => {
                let gap = Duration::from_nanos(until - from);
                write!(f, "free for {gap:?} from {}, with a waiter\n  {waiter}", seconds(*from))
            }
        }
    }
}
