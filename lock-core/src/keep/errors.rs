//! Constructors for the errors of drivers. [`Error::closed`] is next to the error itself.

use std::fmt::Display;

use crate::{
    BoxError, Effect, Error, LossReason,
    error::{Reworded, Shared},
};

/// An option has a value that is not allowed.
pub fn invalid(option: &str, value: impl Display, allowed: impl Into<String>) -> Error {
    let (option, value, allowed) = (option.to_owned(), value.to_string(), allowed.into());
    Error::InvalidOption { option, value, allowed }
}

/// The store cannot do what is asked.
pub fn unsupported(store: &'static str, what: impl Into<String>) -> Error {
    Error::Unsupported { store, what: what.into() }
}

/// What a build without the feature `tls` says to the one who asks for TLS.
pub const NO_TLS: &str =
    "TLS is not compiled in; build with feature \"tls\" (cargo .. --features tls)";

/// A configuration asks for TLS in a build without it.
pub fn no_tls() -> Error {
    invalid("tls", "verify", NO_TLS)
}

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

/// What the configuration names is not there: `source` says what to create or to change.
pub fn misconfigured(store: &'static str, op: &'static str, source: impl Into<BoxError>) -> Error {
    Error::Misconfigured { store, op, source: source.into() }
}

/// The store sent a reply that the driver cannot use.
pub fn rejected(
    store: &'static str,
    op: &'static str,
    effect: Effect,
    source: impl Into<BoxError>,
) -> Error {
    Error::Rejected { store, op, effect, source: source.into() }
}

/// A client library's error in the driver's words. [`Error::client_error`] still returns it.
pub fn reworded(text: impl Into<String>, error: impl Into<BoxError>) -> BoxError {
    Reworded { text: text.into(), error: error.into() }.into()
}

/// The grant was over before the client learned of it: it was silent for too long, as a process that
/// is stopped.
pub fn late(store: &'static str) -> Error {
    Error::PlaceLost { store, name: None, reason: LossReason::Expired }
}

/// The same error, whose copies by [`again`] have the client library's own error, too.
pub fn shared(error: Error) -> Error {
    error.map_source(|source| Shared::from(source).into())
}

/// A copy of an error, for a request that was made for several callers. Of an error that is not
/// [`shared`] it has the text alone.
pub fn again(error: &Error) -> Error {
    let copy = |source: &BoxError| match source.downcast_ref::<Shared>() {
        Some(shared) => BoxError::from(shared.clone()),
        None => source.to_string().into(),
    };
    match error {
        Error::Unavailable { store, op, effect, source } => {
            unavailable(store, op, *effect, copy(source))
        }
        Error::Denied { store, op, source } => denied(store, op, copy(source)),
        Error::Misconfigured { store, op, source } => misconfigured(store, op, copy(source)),
        Error::Rejected { store, op, effect, source } => rejected(store, op, *effect, copy(source)),
        Error::Closed { store, name, by } => {
            Error::Closed { store, name: name.clone(), by: by.clone() }
        }
        // No request fails with another error.
        error => unavailable("the store", "send", error.effect(), error.to_string()),
    }
}
