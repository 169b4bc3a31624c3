//! Nodes of a cluster that have no slots, and get their first one now.

use std::sync::{Arc, Mutex};

use lock_core::keep::poison::lock;

use super::node::{Link, Node};
use crate::{config::Address, wire::failure::Failure};

/// The nodes, each with a connection that is made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Guests {
    nodes: Mutex<Vec<(Address, Arc<Node>)>>,
    /// One connects at a time.
    connecting: tokio::sync::Mutex<()>,
}

impl Guests {
    /// Returns a connected node. `make` makes one that is unknown.
    ///
    /// # Errors
    ///
    /// [`Failure::Down`] if it cannot be connected.
    pub(super) async fn at(
        &self,
        address: &Address,
        make: impl FnOnce() -> Arc<Node>,
    ) -> Result<Arc<Node>, Failure> {
        let node = {
            let mut nodes = lock(&self.nodes);
            let known = nodes.iter().find(|(at, _)| at == address).map(|(_, node)| node.clone());
            known.unwrap_or_else(|| {
                let node = make();
                nodes.push((address.clone(), node.clone()));
                node
            })
        };
        let _connecting = self.connecting.lock().await;
        if let Link::Down(_, previous) = node.state() {
            // Each push comes from all nodes of a cluster, so here none is needed.
            let connection = node.connect(previous.as_ref(), |_, _| ()).await;
            node.up(connection.map_err(|error| Failure::Down(Arc::new(error)))?);
        }
        Ok(node)
    }

    /// Ends those that have slots now, or all.
    pub(super) fn end(&self, has_slots: impl Fn(&Address) -> bool) {
        lock(&self.nodes).retain(|(address, node)| {
            let ends = has_slots(address);
            if ends {
                node.close();
            }
            !ends
        });
    }
}
