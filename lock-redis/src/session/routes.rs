//! Which node of a deployment gets a request.

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, keep::cancel::unless_cancelled};
use tokio::sync::watch;

use super::{
    node::Node,
    slots::{Map, Slots},
};
use crate::layout::key::{Key, slot};

/// The nodes of a deployment.
#[derive(Debug)]
pub(crate) enum Routes {
    /// One node keeps all names: a server, or the primary of a service.
    One(Arc<Node>),
    /// Each node of a cluster keeps the names of its slots.
    Slots(Arc<Slots>),
}

impl Routes {
    /// Returns the node of a key.
    pub(crate) fn of(&self, key: &[u8]) -> Arc<Node> {
        match self {
            Self::One(node) => node.clone(),
            Self::Slots(slots) => slots.owner(slot(key)),
        }
    }

    /// Returns what one request must not mix: the slot in a cluster.
    pub(crate) fn part(&self, key: &Key) -> u16 {
        match self {
            Self::One(_) => 0,
            Self::Slots(_) => slot(key.lock()),
        }
    }

    /// Returns all nodes that are in use.
    pub(crate) fn all(&self) -> Vec<Arc<Node>> {
        match self {
            Self::One(node) => vec![node.clone()],
            Self::Slots(slots) => slots.nodes(),
        }
    }

    /// Returns a receiver of changes of the slots' owners.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<Arc<Map>>> {
        match self {
            Self::One(_) => None,
            Self::Slots(slots) => Some(slots.changes()),
        }
    }

    /// Ends the nodes, and what keeps the slots up to date.
    pub(crate) fn close(&self) {
        self.all().iter().for_each(|node| node.close());
        if let Self::Slots(slots) = self {
            slots.close();
        }
    }

    /// Takes note that something is wrong with a node: another one may have its slots.
    pub(crate) fn suspect(&self) {
        if let Self::Slots(slots) = self {
            slots.suspect();
        }
    }

    /// Waits until the node of a key has a connection, or is another one; false if that is not so in
    /// time, or the caller is cancelled.
    pub(crate) async fn until_up(
        &self,
        key: &[u8],
        limit: Duration,
        caller: Option<&Attempt>,
    ) -> bool {
        // In this order: no change is missed.
        let changes = self.changes();
        let node = self.of(key);
        let Some(mut changes) = changes else { return node.until_up(limit, caller).await };
        tokio::select! {
            up = node.until_up(limit, caller) => up,
            changed = unless_cancelled(caller, changes.changed()) => changed.is_some(),
        }
    }
}
