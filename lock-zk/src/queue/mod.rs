//! Who is before an attempt, and how it hears of them.

pub(crate) mod view;
mod wait;
