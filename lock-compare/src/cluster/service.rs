//! Three nodes that are one store, in a network.

use std::{sync::Arc, time::Duration};

use lock_lab::{EtcdCluster, Network, Place, Server, Side, ZooKeeperCluster};
use tokio::time::timeout;

use super::{OnSide, Probe};
use crate::{Distlock, Failure, Store};

/// Three nodes of etcd or ZooKeeper, each in its own place.
pub(crate) struct Service {
    network: Network,
    nodes: Nodes,
}

enum Nodes {
    Etcd(EtcdCluster),
    ZooKeeper(ZooKeeperCluster),
}

/// Runs the same code with the nodes of either store.
macro_rules! each {
    ($service:expr, $nodes:ident => $body:expr) => {
        match &$service.nodes {
            Nodes::Etcd($nodes) => $body,
            Nodes::ZooKeeper($nodes) => $body,
        }
    };
}

impl Service {
    /// Starts three nodes of a store. `None` if the lab has no cluster of it.
    pub(crate) async fn start(store: Store) -> Result<Option<Self>, Failure> {
        if !matches!(store, Store::Etcd | Store::ZooKeeper) {
            return Ok(None);
        }
        let network = Network::new()?;
        let nodes = match store {
            Store::Etcd => Nodes::Etcd(EtcdCluster::start(&network).await?),
            _ => Nodes::ZooKeeper(ZooKeeperCluster::start(&network).await?),
        };
        Ok(Some(Self { network, nodes }))
    }

    #[cfg(not(all(feature = "etcd", feature = "zookeeper")))]
    fn store(&self) -> Store {
        match &self.nodes {
            Nodes::Etcd(_) => Store::Etcd,
            Nodes::ZooKeeper(_) => Store::ZooKeeper,
        }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    pub(crate) fn side(&self) -> Result<Arc<Side>, Failure> {
        Ok(Arc::new(self.network.side()?))
    }

    /// Returns the leading node.
    ///
    /// Fails if no node leads within 30 s.
    pub(crate) async fn leader(&self) -> Result<usize, Failure> {
        Ok(each!(self, nodes => nodes.leader().await?))
    }

    /// Returns a leader other than `old`, if there is one within the limit.
    pub(crate) async fn leader_after(&self, old: usize, limit: Duration) -> Option<usize> {
        let new = async { each!(self, nodes => nodes.leader_after(old).await.ok()) };
        timeout(limit, new).await.ok().flatten()
    }

    pub(crate) fn node(&self, node: usize) -> &Server {
        each!(self, nodes => nodes.node(node))
    }

    pub(crate) fn place(&self, node: usize) -> Place {
        each!(self, nodes => nodes.place(node))
    }

    pub(crate) fn peers(&self, node: usize) -> Vec<Place> {
        each!(self, nodes => nodes.peers(node))
    }

    pub(crate) fn url_of(&self, nodes: &[usize]) -> String {
        each!(self, cluster => cluster.url_of(nodes))
    }

    /// distlock on some nodes, from a side.
    pub(crate) fn distlock(&self, side: &Arc<Side>, nodes: &[usize]) -> OnSide {
        OnSide::new(Distlock::new(self.url_of(nodes)), side)
    }

    /// The store's own lock, or its recipe, on some nodes, from a side.
    pub(crate) fn native(&self, side: &Arc<Side>, nodes: &[usize]) -> Result<OnSide, Failure> {
        let addrs = nodes.iter().map(|node| self.node(*node).addr().to_string());
        let addrs: Vec<String> = addrs.collect();
        match &self.nodes {
            #[cfg(feature = "etcd")]
            Nodes::Etcd(_) => Ok(OnSide::new(super::EtcdLock::new(addrs), side)),
            #[cfg(feature = "zookeeper")]
            Nodes::ZooKeeper(_) => {
                Ok(OnSide::new(super::ZooKeeperLock::new(addrs.join(",")), side))
            }
            #[cfg(not(all(feature = "etcd", feature = "zookeeper")))]
            _ => {
                let _ = (addrs, side);
                Err(crate::Missing::client_of(self.store()).into())
            }
        }
    }

    /// A key, seen from one node by a bare client on a side.
    pub(crate) async fn probe(
        &self,
        side: &Arc<Side>,
        node: usize,
        key: &str,
    ) -> Result<Box<dyn Probe>, Failure> {
        let addr = self.node(node).addr().to_string();
        match &self.nodes {
            #[cfg(feature = "etcd")]
            Nodes::Etcd(_) => {
                Ok(Box::new(super::etcd_probe::EtcdProbe::new(addr, key.to_owned(), side).await?))
            }
            #[cfg(feature = "zookeeper")]
            Nodes::ZooKeeper(_) => {
                Ok(Box::new(super::zookeeper_probe::ZooKeeperProbe::new(addr, key, side).await?))
            }
            #[cfg(not(all(feature = "etcd", feature = "zookeeper")))]
            _ => {
                let _ = (addr, side, key);
                Err(crate::Missing::client_of(self.store()).into())
            }
        }
    }
}
