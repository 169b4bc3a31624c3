//! Observers of an election, and what they are told.

pub(crate) mod observe;
pub(crate) mod observers;
