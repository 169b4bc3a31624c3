//! The entries before an attempt, and how it learns of their ends.

pub(crate) mod view;
mod wait;
