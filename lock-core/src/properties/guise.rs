//! The locks that the checks of an exclusive lock use.

use crate::{Kind, LockKind};

/// The lock that the checks of an exclusive lock use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Guise {
    /// A lock of this kind.
    Lock(Kind),
    /// The leadership in an election.
    Leadership,
    /// A set of one name.
    SetOfOne,
}

impl Guise {
    /// The kind of its entry in a queue.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Lock(kind) => kind,
            Self::Leadership | Self::SetOfOne => Kind::Exclusive,
        }
    }

    /// The kind that a store must have for it.
    pub(super) fn requires(self) -> LockKind {
        match self {
            Self::Lock(kind) => kind.into(),
            Self::Leadership => LockKind::Election,
            Self::SetOfOne => LockKind::Exclusive,
        }
    }
}
