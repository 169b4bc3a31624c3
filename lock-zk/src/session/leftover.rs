//! Nodes that an attempt may have left, until the [janitor](super::janitor) removes it.

use uuid::Uuid;

#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    /// A node.
    Node(String),
    /// All nodes that an attempt may have left in a directory.
    Attempt(String, Uuid),
}

impl Leftover {
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Node(path) => Some(path),
            Self::Attempt(..) => None,
        }
    }
}
