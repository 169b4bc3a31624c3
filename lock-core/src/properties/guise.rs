//! What the checks of an exclusive lock are made with.

use crate::{Kind, LockKind};

/// What the checks of an exclusive lock are made with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Guise {
    /// A lock of this kind.
    Lock(Kind),
    /// The leadership in an election.
    Leadership,
    /// A set that has one name.
    SetOfOne,
}

impl Guise {
    /// What its entry in a queue is.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Lock(kind) => kind,
            Self::Leadership | Self::SetOfOne => Kind::Exclusive,
        }
    }

    /// What a store must have for it.
    pub(super) fn requires(self) -> LockKind {
        match self {
            Self::Lock(kind) => kind.into(),
            Self::Leadership => LockKind::Election,
            Self::SetOfOne => LockKind::Exclusive,
        }
    }
}
