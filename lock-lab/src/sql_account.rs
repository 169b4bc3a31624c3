//! The account on a private SQL server.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

/// The name of the user, and of the user's database.
pub(crate) const NAME: &str = "lab";

/// The password of the user [`NAME`], made for one server. `Debug` hides it.
///
/// It has no quote and no backslash, so it may stand in SQL as it is.
#[derive(Clone)]
pub struct Password(String);

impl Default for Password {
    /// Ends in characters that a URL must encode, so that every driver shows that it decodes them.
    fn default() -> Self {
        Self(format!("{}@:/%", Uuid::new_v4().simple()))
    }
}

impl Password {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part of a URL before the host.
    pub(crate) fn login(&self) -> String {
        format!("{NAME}:{}@", utf8_percent_encode(&self.0, NON_ALPHANUMERIC))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
