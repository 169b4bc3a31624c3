//! The kinds of locks: exclusive, shared, permits.

use std::fmt;

use crate::driver::worded::worded;

/// The kind that an entry asks for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Kind {
    /// Alone. Also the kind of every entry that a driver cannot parse, such as a foreign client's.
    #[default]
    Exclusive,
    /// Together with other shared entries.
    Shared,
    /// `weight` of the `limit` permits.
    Permit {
        /// How many permits the entry takes.
        weight: u32,
        /// How many there are.
        limit: u32,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permit { weight, limit } => write!(f, "{weight} of {limit} permits"),
        }
    }
}

worded! {
    /// The kinds that a caller can ask for.
    pub enum LockKind {
        /// One holder at a time.
        Exclusive => "exclusive locks",
        /// Many readers, or one writer.
        Shared => "shared locks",
        /// A limited number of permits.
        Permits => "semaphores",
        /// An exclusive lock whose holder publishes a value to all observers.
        Election => "elections",
    }
}

impl From<Kind> for LockKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Exclusive => Self::Exclusive,
            Kind::Shared => Self::Shared,
            Kind::Permit { .. } => Self::Permits,
        }
    }
}
