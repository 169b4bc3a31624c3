//! The data in the store: directories, nodes and their contents, and how they are read back. Pure.

pub(crate) mod child;
pub(crate) mod floor;
pub(crate) mod listing;
pub(crate) mod mark;
pub(crate) mod note;
pub(crate) mod path;
