//! The attempts ahead in a queue, and how a client learns that an attempt is let in. SQL reads the
//! queue in its order (`wire::script::read`); who is next is decided by [`lock_core::queue`].

pub(crate) mod poll;
#[cfg(feature = "postgres")]
pub(crate) mod pushes;
pub(crate) mod schedule;
