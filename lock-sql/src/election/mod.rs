//! What observers of an election are told.

pub(crate) mod observe;
pub(crate) mod observers;
