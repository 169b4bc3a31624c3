//! What could not be removed at once, until the [janitor](super::janitor) does.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use uuid::Uuid;

use super::{attempt::Node, poison::lock};

/// What is left to remove in one session.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    left: Mutex<Vec<Chore>>,
    more: Arc<Notify>,
}

#[derive(Clone, Debug)]
pub(super) enum Chore {
    /// A node.
    Node(String),
    /// Whatever an attempt may have left in a directory.
    Attempt(String, Uuid),
}

impl Chores {
    /// Removes a node later.
    pub(crate) fn node(&self, path: &str) {
        self.add(Chore::Node(path.to_owned()));
    }

    /// Removes later what an attempt has left: its node, or whatever there is if none is known.
    pub(crate) fn leave(&self, node: Option<&Node>, directory: &str, attempt: Uuid) {
        match node {
            Some(node) => self.node(&node.path),
            None => self.add(Chore::Attempt(directory.to_owned(), attempt)),
        }
    }

    fn add(&self, chore: Chore) {
        lock(&self.left).push(chore);
        self.more.notify_one();
    }

    /// Rings when there is something to do.
    pub(crate) fn more(&self) -> Arc<Notify> {
        self.more.clone()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.left).len()
    }

    /// Puts back what was refused. Returns whether anything is left.
    pub(super) fn put_back(&self, refused: Vec<Chore>) -> bool {
        let mut left = lock(&self.left);
        left.extend(refused);
        !left.is_empty()
    }

    pub(super) fn take(&self) -> Vec<Chore> {
        std::mem::take(&mut *lock(&self.left))
    }
}

impl Chore {
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Node(path) => Some(path),
            Self::Attempt(..) => None,
        }
    }
}
