//! The leader of an election, and its observers.

pub(crate) mod observe;
pub(crate) mod observers;
