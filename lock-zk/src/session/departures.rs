//! What attempts have left behind, until the [janitor](super::janitor) removes it.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use uuid::Uuid;

use super::{attempt::Node, poison::lock};

/// What is left to remove in one session.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    left: Mutex<Vec<Departure>>,
    more: Arc<Notify>,
}

#[derive(Clone, Debug)]
pub(super) enum Departure {
    /// A node.
    Node(String),
    /// Whatever an attempt may have left in a directory.
    Attempt(String, Uuid),
}

impl Departures {
    /// Removes a node later.
    pub(crate) fn node(&self, path: &str) {
        self.add(Departure::Node(path.to_owned()));
    }

    /// Removes later what an attempt has left: its node, or whatever there is if none is known.
    pub(crate) fn leave(&self, node: Option<&Node>, directory: &str, attempt: Uuid) {
        match node {
            Some(node) => self.node(&node.path),
            None => self.add(Departure::Attempt(directory.to_owned(), attempt)),
        }
    }

    fn add(&self, departure: Departure) {
        lock(&self.left).push(departure);
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
    pub(super) fn put_back(&self, refused: Vec<Departure>) -> bool {
        let mut left = lock(&self.left);
        left.extend(refused);
        !left.is_empty()
    }

    pub(super) fn take(&self) -> Vec<Departure> {
        std::mem::take(&mut *lock(&self.left))
    }
}

impl Departure {
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::Node(path) => Some(path),
            Self::Attempt(..) => None,
        }
    }
}
