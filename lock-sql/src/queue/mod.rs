//! Who is before an attempt in a queue, and how its client hears that it is let in.

pub(crate) mod poll;
#[cfg(feature = "postgres")]
pub(crate) mod pushes;
pub(crate) mod schedule;
