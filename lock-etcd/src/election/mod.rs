//! Who leads, what it says, and who observes it.

mod leader;
pub(crate) mod observe;
pub(crate) mod observers;
pub(crate) mod publish;
