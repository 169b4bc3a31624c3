//! The entries before an attempt, as far as this client knows, and how it learns of changes.

mod events;
mod far;
pub(crate) mod lists;
pub(crate) mod name;
pub(crate) mod stream;
pub(crate) mod view;
pub(crate) mod watcher;
