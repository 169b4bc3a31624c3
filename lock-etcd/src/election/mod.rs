//! The leader of an election, its value, and its observers.

pub(crate) mod observe;
pub(crate) mod observers;
mod publish;
