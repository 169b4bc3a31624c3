//! Leaders, and their observers.

pub(crate) mod observe;
pub(crate) mod observers;
