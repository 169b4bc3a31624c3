//! The entries before an attempt, as far as this client knows, and how it learns of changes.

pub(crate) mod diagnose;
mod events;
pub(crate) mod lister;
mod lists;
mod observed;
pub(crate) mod stream;
pub(crate) mod view;
pub(crate) mod watched;
pub(crate) mod watcher;
