//! The errors that drivers make. [`Error::closed`] is beside the error itself.

use crate::{BoxError, Effect, Error};

/// The store cannot be reached, or has not answered.
pub fn unavailable(
    store: &'static str,
    op: &'static str,
    effect: Effect,
    source: impl Into<BoxError>,
) -> Error {
    Error::Unavailable { store, op, effect, source: source.into() }
}

/// The store refused the login, or lacks a permission.
pub fn denied(store: &'static str, op: &'static str, source: impl Into<BoxError>) -> Error {
    Error::Denied { store, op, source: source.into() }
}

/// The store answered with what the driver cannot work with.
pub fn rejected(
    store: &'static str,
    op: &'static str,
    effect: Effect,
    source: impl Into<BoxError>,
) -> Error {
    Error::Rejected { store, op, effect, source: source.into() }
}

/// The grant was over before the client heard of it.
pub fn late(store: &'static str) -> Error {
    let why = "the grant was over before this client heard of it";
    unavailable(store, "acquire", Effect::None, why)
}

/// The error of a request that was made for several callers, for one more of them.
pub fn again(error: &Error) -> Error {
    let text = |source: &BoxError| source.to_string();
    match error {
        Error::Unavailable { store, op, effect, source } => {
            unavailable(store, op, *effect, text(source))
        }
        Error::Denied { store, op, source } => denied(store, op, text(source)),
        Error::Rejected { store, op, effect, source } => rejected(store, op, *effect, text(source)),
        Error::Closed { store, by } => Error::Closed { store, by: by.clone() },
        // Nothing that was sent fails like this.
        error => unavailable("the store", "send", error.effect(), error.to_string()),
    }
}
