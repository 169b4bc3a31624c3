//! Who leads, as its observers are told.

pub(crate) mod observe;
