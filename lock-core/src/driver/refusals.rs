//! The errors that drivers have in common.

use crate::{
    Error, Kind, Request, Result, Wish,
    keep::errors::{invalid, unsupported},
};

/// The error for a request on a name that others use with `found` permits.
#[doc(hidden)]
pub fn limit_conflict(request: &Request, found: u32) -> Error {
    let name = &request.name;
    match request.kind {
        Kind::Permit { limit, .. } => invalid(
            "permits",
            limit,
            format!("{name} is in use with {found} permits; all must name the same number"),
        ),
        // Only a semaphore has a limit.
        _ => Error::Contended { name: name.clone() },
    }
}

/// Refuses any lock but exclusive ones, for drivers that cannot take others in one step: see
/// [`try_all`](crate::DistributedLock::try_all).
///
/// # Errors
///
/// [`Error::Unsupported`].
#[doc(hidden)]
pub fn only_exclusive(store: &'static str, wishes: &[Wish]) -> Result<()> {
    match wishes.iter().all(|(request, _)| request.kind == Kind::Exclusive) {
        true => Ok(()),
        false => Err(unsupported(store, "take shared locks in one step")),
    }
}

/// The error of a method that a driver does not implement.
pub(super) fn not_implemented(what: &str) -> Error {
    unsupported("this store", what)
}
