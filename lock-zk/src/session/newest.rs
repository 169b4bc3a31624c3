//! The login that a session had last.

use lock_core::Instant;

/// The newest login of a session.
pub(super) struct Newest {
    pub(super) login: Option<String>,
    /// When the session logged in anew.
    pub(super) since: Option<Instant>,
}

impl Newest {
    /// The login that a session began with.
    pub(super) fn of(login: Option<String>) -> Self {
        Self { login, since: None }
    }
}
