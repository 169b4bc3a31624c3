//! What stands in the store: directories, nodes, what lies in them, and how it is read back. Pure.

pub(crate) mod child;
pub(crate) mod floor;
pub(crate) mod listing;
pub(crate) mod note;
pub(crate) mod path;
pub(crate) mod values;
