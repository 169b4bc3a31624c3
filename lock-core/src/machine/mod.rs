//! The machinery beneath the API: timers, work that is polled to its end, conversions of a grant.

pub(crate) mod alarm;
pub(crate) mod conversion;
pub(crate) mod drain;
mod end;
pub(crate) mod ended_waits;
pub(crate) mod finish;
mod moving;
pub(crate) mod orders;
pub(crate) mod runtime;
