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
        let before = down(&node);
        let _connecting = self.connecting.lock().await;
        let Link::Down(why, previous) = node.state() else { return Ok(node) };
        if before.is_some_and(|before| !Arc::ptr_eq(&before, &why)) {
            // Another caller has tried meanwhile: one connection in vain is enough for all.
            return Err(Failure::Down(why));
        }
        // Each push comes from all nodes of a cluster, so here none is needed.
        match node.connect(&previous, |_, _| ()).await {
            Ok(connection) => {
                node.up(connection);
                Ok(node)
            }
            Err(error) => {
                node.stays_down(error.clone());
                Err(Failure::Down(Arc::new(error)))
            }
        }
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

fn down(node: &Node) -> Option<Arc<redis::RedisError>> {
    match node.state() {
        Link::Down(why, _) => Some(why),
        Link::Up(_) | Link::Closed => None,
    }
}
