//! Leaders, and their observers.

mod leader;
pub(crate) mod observe;
pub(crate) mod observers;
