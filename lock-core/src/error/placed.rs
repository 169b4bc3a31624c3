//! What lock-core adds to a client library's error.

use std::fmt;

use crate::LockName;

/// The error of a client library, unchanged.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A client library's error with the lock's name, and the server's address in front.
#[derive(Debug)]
pub(super) struct Placed {
    /// In the text of the whole error.
    pub(super) name: Option<LockName>,
    pub(super) place: Option<String>,
    pub(super) hint: Option<String>,
    pub(super) source: BoxError,
}

impl Placed {
    pub(super) fn of(source: BoxError) -> Self {
        match source.downcast() {
            Ok(placed) => *placed,
            Err(source) => Self { name: None, place: None, hint: None, source },
        }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        self.source.fmt(f)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Placed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
