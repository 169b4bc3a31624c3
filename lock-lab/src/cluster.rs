//! Servers with several nodes.

use std::{net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{Builder, LabError, Network, Place, Server, builder::Kind, network::Node};

const SIZE: usize = 3;
/// Longest wait for one node to say whether it leads. A stopped node says nothing.
const LEADER_LIMIT: Duration = Duration::from_millis(500);
const LEADER_PAUSE: Duration = Duration::from_millis(10);
/// Longest wait for a leader. A loaded machine needs more than one election.
const ELECTION_LIMIT: Duration = Duration::from_secs(60);

/// Three nodes that are one store, each in a place of its own in a [`Network`].
///
/// Each node is a [`Server`], which can be stopped, killed and restarted with its data. Nodes are
/// numbered from 0. A cluster's data is on `/dev/shm` if there is one: it survives each kill.
#[derive(Debug)]
pub struct Cluster<K> {
    nodes: Vec<K>,
    places: Vec<Place>,
    network: Network,
}

/// A kind of server that can be a node of a cluster.
pub trait Member: Kind + Deref<Target = Server> {
    /// Turns the options of one node into options for a cluster.
    fn join(options: &mut Self::Options, index: usize, places: &[Place]);

    /// Asks a node whether it leads. Returns the term (each leader has a higher one), or `None`.
    fn term(addr: SocketAddr) -> impl Future<Output = Option<u64>> + Send + 'static;
}

impl<K: Member> Cluster<K> {
    /// Starts a cluster with default options and waits until all nodes serve.
    pub async fn start(network: &Network) -> Result<Self, LabError> {
        Builder::default().start_cluster(network).await
    }

    /// Returns one node.
    pub fn node(&self, node: usize) -> &K {
        &self.nodes[node]
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[K] {
        &self.nodes
    }

    /// Returns the place of a node.
    pub fn place(&self, node: usize) -> Place {
        self.places[node]
    }

    /// Returns the places of all nodes.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the places of all nodes but one.
    pub fn peers(&self, node: usize) -> Vec<Place> {
        let own = self.place(node);
        self.places.iter().copied().filter(|place| *place != own).collect()
    }

    /// Returns the URL of all nodes, such as `etcd://10.96.0.2:20000,10.96.0.3:20000,..`.
    pub fn url(&self) -> String {
        self.url_of(&[0, 1, 2])
    }

    /// Returns the URL of some nodes, in this order.
    pub fn url_of(&self, nodes: &[usize]) -> String {
        let first = self.node(nodes[0]).url();
        let rest = nodes[1..].iter().map(|node| format!(",{}", self.node(*node).addr()));
        first + &rest.collect::<String>()
    }

    /// Waits until a node leads, and returns it. If two claim to lead, it is the newer leader.
    ///
    /// Fails if none leads within 60 s.
    pub async fn leader(&self) -> Result<usize, LabError> {
        self.until_leader(|_| true).await
    }

    /// Waits until another node than `old` leads, and returns it.
    pub async fn leader_after(&self, old: usize) -> Result<usize, LabError> {
        self.until_leader(|leader| leader != old).await
    }

    /// Asks all nodes once which leads. Takes 0.5 s if one is silent.
    pub async fn leader_now(&self) -> Option<usize> {
        let ask = |node: &K| {
            let term = K::term(node.control());
            let term = async move { timeout(LEADER_LIMIT, term).await.ok().flatten() };
            self.network.control().spawn(term)
        };
        let asked: Vec<_> = self.nodes.iter().map(ask).collect();
        let mut newest = None;
        for (node, answer) in asked.into_iter().enumerate() {
            let term = answer.await.ok().flatten();
            newest = newest.max(term.map(|term| (term, node)));
        }
        newest.map(|(_, node)| node)
    }

    async fn until_leader(&self, is_right: impl Fn(usize) -> bool) -> Result<usize, LabError> {
        let search = async {
            loop {
                match self.leader_now().await {
                    Some(leader) if is_right(leader) => return leader,
                    _ => sleep(LEADER_PAUSE).await,
                }
            }
        };
        let elapsed = |_| LabError::io("waiting for a leader")(std::io::ErrorKind::TimedOut.into());
        timeout(ELECTION_LIMIT, search).await.map_err(elapsed)
    }
}

impl<K: Member> Builder<K> {
    /// Starts three nodes with these options in a network and waits until all serve.
    pub async fn start_cluster(self, network: &Network) -> Result<Cluster<K>, LabError> {
        let joined: Vec<_> = (0..SIZE).map(|_| network.join()).collect::<Result<_, _>>()?;
        let places: Vec<_> = joined.iter().map(Node::place).collect();
        let builder = self.on(network);
        let nodes = joined.into_iter().enumerate();
        let nodes = nodes.map(|(index, node)| builder.member(index, &places, node));
        let nodes: Vec<K> = nodes.collect::<Result<_, _>>()?;
        for node in &nodes {
            node.relaunch()?;
        }
        for node in &nodes {
            node.ready().await?;
        }
        Ok(Cluster { nodes, places, network: network.clone() })
    }

    /// Makes one node of a cluster, which does not run yet.
    fn member(&self, index: usize, places: &[Place], node: Node) -> Result<K, LabError> {
        let mut options = self.options.clone();
        K::join(&mut options, index, places);
        let server = Server::create(self.common.clone(), Arc::new(options.clone()), Some(node))?;
        Ok(K::new(server, options))
    }
}
