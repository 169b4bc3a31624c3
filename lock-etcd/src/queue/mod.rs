//! Who is before an attempt, as far as this client knows, and how it hears of what changes.

pub(crate) mod diagnose;
mod events;
mod lists;
pub(crate) mod names;
pub(crate) mod view;
pub(crate) mod watched;
pub(crate) mod watcher;
