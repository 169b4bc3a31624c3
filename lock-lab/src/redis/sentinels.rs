//! A primary with replicas, and the sentinels that watch them.

mod builder;
mod pause;
mod view;

use std::{io, net::SocketAddr, time::Duration};

use tokio::time::{sleep, timeout};

pub use self::builder::RedisSentinelsBuilder;
use super::{
    Redis,
    sentinel::{SERVICE, Sentinel},
};
use crate::{LabError, Network, Place};

/// Longest time for an action of the sentinels. On a loaded machine one election is not enough, and
/// they try the next one after twice the failover timeout. Sentinels that have stood still for 2 s do
/// nothing for 30 s.
const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// A Redis primary with replicas, and three sentinels that promote a replica when it is gone.
///
/// The nodes are numbered from 0, and node 0 is the first primary. Each node and each [`Sentinel`]
/// is a [`Server`](crate::Server), which can be stopped, killed and restarted. A restart keeps data
/// and role. Without a [`Network`] all run on 127.0.0.1. In one, each has a place of its own, so
/// any can be cut off from any other.
///
/// ```no_run
/// # async fn run() -> Result<(), lock_lab::LabError> {
/// use lock_lab::RedisSentinels;
///
/// let redis = RedisSentinels::start().await?;
/// let old = redis.primary().await?;
/// for replica in redis.replicas_of(old) {
///     redis.pause_replication(replica).await?;
/// }
/// redis.node(old).command(&[b"SET", b"lock", b"mine", b"NX"]).await?;
/// redis.node(old).kill();
/// let new = redis.primary_after(old).await?; // about 3 s later, and without the key
/// # Ok(()) }
/// ```
///
/// Such a loss does not happen by chance: on one machine a write reaches the replicas before a kill
/// does. A stopped replica does not lose it either: it reads the write from its socket when it goes
/// on.
#[derive(Debug)]
pub struct RedisSentinels {
    nodes: Vec<Redis>,
    sentinels: Vec<Sentinel>,
    network: Option<Network>,
}

impl RedisSentinels {
    /// Starts a primary, two replicas and three sentinels with default options on 127.0.0.1, and
    /// waits until a failover is possible.
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
    }

    /// Same as [`start`](Self::start), in a network.
    pub async fn start_on(network: &Network) -> Result<Self, LabError> {
        Self::builder().on(network).start().await
    }

    /// Returns the options to choose from.
    pub fn builder() -> RedisSentinelsBuilder {
        RedisSentinelsBuilder::default()
    }

    /// Returns one Redis, in any role.
    pub fn node(&self, node: usize) -> &Redis {
        &self.nodes[node]
    }

    /// Returns all nodes: the first primary, then the replicas.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Returns the numbers of all nodes but one.
    pub fn replicas_of(&self, primary: usize) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| *node != primary).collect()
    }

    /// Returns one sentinel.
    pub fn sentinel(&self, sentinel: usize) -> &Sentinel {
        &self.sentinels[sentinel]
    }

    /// Returns all sentinels.
    pub fn sentinels(&self) -> &[Sentinel] {
        &self.sentinels
    }

    /// Returns the addresses of the sentinels, for clients.
    pub fn sentinel_addrs(&self) -> Vec<SocketAddr> {
        self.sentinels.iter().map(|sentinel| sentinel.addr()).collect()
    }

    /// Returns the name by which the sentinels know the primary: `lab`.
    pub fn service(&self) -> &'static str {
        SERVICE
    }

    /// Returns the URL that names the sentinels: `redis+sentinel://A,B,C/lab`.
    pub fn url(&self) -> String {
        let sentinels: Vec<_> = self.sentinel_addrs().iter().map(ToString::to_string).collect();
        format!("redis+sentinel://{}/{SERVICE}", sentinels.join(","))
    }

    /// Returns the places of all other nodes and of the sentinels. Empty if they are on 127.0.0.1.
    pub fn peers(&self, node: usize) -> Vec<Place> {
        let others = self.replicas_of(node).into_iter().filter_map(|node| self.node(node).place());
        others.chain(self.sentinels.iter().filter_map(|sentinel| sentinel.place())).collect()
    }

    /// Waits until the sentinels name a primary, and returns it. It may be dead.
    ///
    /// Fails if they name none within 90 s.
    pub async fn primary(&self) -> Result<usize, LabError> {
        until("waiting for a primary", || self.primary_now()).await
    }

    /// Waits until the sentinels name another primary than `old` that itself claims to be the
    /// primary, and returns it.
    pub async fn primary_after(&self, old: usize) -> Result<usize, LabError> {
        until("waiting for a failover", || async {
            let new = self.primary_now().await.filter(|new| *new != old)?;
            self.leads(new).await.then_some(new)
        })
        .await
    }

    /// Asks each sentinel once which node is the primary. Returns the node that most of the replies
    /// name. Takes a second for each silent sentinel.
    pub async fn primary_now(&self) -> Option<usize> {
        let mut votes = vec![0; self.nodes.len()];
        for sentinel in &self.sentinels {
            if let Some(node) = view::named(sentinel).await.and_then(|addr| self.node_at(addr)) {
                votes[node] += 1;
            }
        }
        let most = votes.iter().copied().max().filter(|most| *most > 0)?;
        let mut first = votes.iter().enumerate().filter(|(_, votes)| **votes == most);
        // At a draw, neither.
        first.next().map(|(node, _)| node).filter(|_| first.next().is_none())
    }

    /// Waits until a failover is possible: all nodes that were not killed have the data of the
    /// primary, and all sentinels that were not killed know that and reach each other.
    ///
    /// Fails if it is not possible within 90 s.
    pub async fn await_replicas(&self) -> Result<(), LabError> {
        until("waiting for replicas", || self.failover_is_possible()).await
    }

    async fn failover_is_possible(&self) -> Option<()> {
        let primary = self.primary_now().await?;
        self.are_linked(primary).await?;
        let replicas = self.running_replicas_of(primary).map(|node| self.node(node).addr());
        let replicas: Vec<_> = replicas.collect();
        let sentinels: Vec<_> = self.sentinels.iter().filter(|it| it.runs()).collect();
        for sentinel in &sentinels {
            view::can_promote(sentinel, &replicas, sentinels.len()).await?;
        }
        Some(())
    }

    /// Returns whether all running replicas get the primary's writes.
    async fn are_linked(&self, primary: usize) -> Option<()> {
        let addr = self.node(primary).addr();
        for node in self.running_replicas_of(primary) {
            let link = view::Link::of(self.node(node)).await?;
            (link.is_up && link.primary == Some(addr)).then_some(())?;
        }
        self.leads(primary).await.then_some(())
    }

    async fn leads(&self, node: usize) -> bool {
        view::Link::of(self.node(node)).await.is_some_and(|link| link.primary.is_none())
    }

    fn running_replicas_of(&self, primary: usize) -> impl Iterator<Item = usize> {
        self.replicas_of(primary).into_iter().filter(|node| self.node(*node).runs())
    }

    fn node_at(&self, addr: SocketAddr) -> Option<usize> {
        self.nodes.iter().position(|node| node.addr() == addr)
    }
}

/// Looks again and again until there is a result.
pub(super) async fn until<T, F: Future<Output = Option<T>>>(
    action: &str,
    look: impl Fn() -> F,
) -> Result<T, LabError> {
    let search = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => sleep(PAUSE).await,
            }
        }
    };
    let elapsed = |_| LabError::io(action)(io::ErrorKind::TimedOut.into());
    timeout(LIMIT, search).await.map_err(elapsed)
}
