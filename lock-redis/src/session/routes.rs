//! Which node of a deployment gets a request.

use std::sync::Arc;

use redis::Cmd;

use super::node::Node;
use crate::layout::key::Key;

/// The nodes of a deployment.
#[derive(Debug)]
pub(crate) enum Routes {
    /// One node keeps all names: a server, or the primary of a service.
    One(Arc<Node>),
}

impl Routes {
    /// Returns the node that keeps a name.
    pub(crate) fn of(&self, _key: &Key) -> &Arc<Node> {
        match self {
            Self::One(node) => node,
        }
    }

    /// Returns the node for a command, by the first key of it.
    pub(crate) fn of_command(&self, _command: &Cmd) -> &Arc<Node> {
        match self {
            Self::One(node) => node,
        }
    }

    /// Returns all nodes that are in use.
    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        match self {
            Self::One(node) => vec![node.clone()],
        }
    }
}
