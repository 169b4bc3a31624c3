//! The attempts ahead in a queue, and how a client learns that an attempt is let in.

pub(crate) mod next;
#[cfg(feature = "postgres")]
pub(crate) mod pushes;
pub(crate) mod schedule;
