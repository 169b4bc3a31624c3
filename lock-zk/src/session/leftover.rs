//! Nodes that an attempt may have left, until the [janitor](super::janitor) removes it.

use uuid::Uuid;

use crate::session::attempt::Node;

#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    /// A node.
    Node(String),
    /// All nodes that an attempt may have left in a directory.
    Attempt(String, Uuid),
}

impl Leftover {
    /// The leftover of an attempt: its node, or all that it may have left if no node is known.
    pub(crate) fn of(node: Option<&Node>, directory: &str, attempt: Uuid) -> Self {
        match node {
            Some(node) => Self::Node(node.path.clone()),
            None => Self::Attempt(directory.to_owned(), attempt),
        }
    }

    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Node(path) => Some(path),
            Self::Attempt(..) => None,
        }
    }
}
