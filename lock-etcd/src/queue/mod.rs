//! The entries before an attempt, as far as this client knows, and how it learns of changes.

pub(crate) mod diagnose;
mod events;
mod lists;
pub(crate) mod names;
mod observed;
pub(crate) mod stream;
pub(crate) mod view;
pub(crate) mod watched;
pub(crate) mod watcher;
