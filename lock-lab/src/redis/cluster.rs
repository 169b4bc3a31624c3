//! A Redis Cluster.

mod builder;
mod member;
mod migration;
mod slot;
mod view;

use std::{collections::BTreeSet, net::SocketAddr, ops::Range, time::Duration};

use tokio::time::timeout;

pub use self::builder::RedisClusterBuilder;
pub(super) use self::member::Member;
use self::view::View;
use super::{Redis, sentinels::until};
use crate::LabError;

/// A replica says nothing when it gives up a failover by hand, which it does after 5 s.
const GIVEN_UP: Duration = Duration::from_secs(6);

/// A Redis Cluster: three primaries that share the slots, and replicas that take over from them.
///
/// The nodes are numbered from 0. At first, nodes 0 to 2 are the primaries, each with a third of
/// the 16,384 slots in order; node 3 is a replica of node 0, and so on. Each node is a [`Redis`],
/// which can be stopped, killed and restarted with its data.
///
/// ```no_run
/// # async fn run() -> Result<(), lock_lab::LabError> {
/// use lock_lab::RedisCluster;
///
/// let redis = RedisCluster::start().await?;
/// let slot = RedisCluster::slot_of(b"lock");
/// let owner = redis.owner(slot).await?;
/// redis.migrate(slot, (owner + 1) % 3).await?; // with all its keys, while clients go on
///
/// redis.node(0).kill();
/// let new = redis.owner_after(0, 7).await?; // about 3 s later: the replica has slot 7
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Number of slots.
    pub const SLOTS: u16 = 16384;
    /// Number of primaries.
    pub const PRIMARIES: usize = 3;

    /// Starts three primaries with one replica each, with default options, on 127.0.0.1, and waits
    /// until a failover of each is possible.
    pub async fn start() -> Result<Self, LabError> {
        Self::builder().start().await
    }

    /// Returns the options to choose from.
    pub fn builder() -> RedisClusterBuilder {
        RedisClusterBuilder::default()
    }

    /// Returns the slot of a key.
    pub fn slot_of(key: &[u8]) -> u16 {
        slot::of(key)
    }

    /// Returns one node, in any role.
    pub fn node(&self, node: usize) -> &Redis {
        &self.nodes[node]
    }

    /// Returns all nodes: the first primaries, then the replicas.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Returns the addresses of all nodes.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.addr()).collect()
    }

    /// Returns the URL for clients, with the first three nodes:
    /// `redis+cluster://127.0.0.1:20001,..`. It contains the password, if there is one.
    pub fn url(&self) -> String {
        let first = self.node(0).url().replacen("redis", "redis+cluster", 1);
        let rest = self.nodes[1..Self::PRIMARIES].iter().map(|node| format!(",{}", node.addr()));
        first + &rest.collect::<String>()
    }

    /// Waits until a running node owns a slot, in the eyes of all running nodes, and returns it.
    ///
    /// Fails if there is none within 90 s.
    pub async fn owner(&self, slot: u16) -> Result<usize, LabError> {
        until("waiting for the owner of a slot", || self.owner_now(slot)).await
    }

    /// Waits until another node than `old` owns a slot, and the cluster serves again. Returns it.
    pub async fn owner_after(&self, old: usize, slot: u16) -> Result<usize, LabError> {
        until("waiting for a failover", || async {
            let new = self.owner_now(slot).await.filter(|new| *new != old)?;
            self.serves().await.map(|()| new)
        })
        .await
    }

    /// Waits until the cluster serves, and a failover is possible: each replica that was not killed
    /// has all that its primary had written before.
    pub async fn await_replicas(&self) -> Result<(), LabError> {
        until("waiting for replicas", || self.failover_is_possible()).await
    }

    /// Returns the nodes that own slots now, in the eyes of the first running node that replies.
    pub async fn primaries(&self) -> Result<Vec<usize>, LabError> {
        until("waiting for a node", || async {
            let view = self.any_view().await?;
            let owning = view.nodes.iter().filter(|seen| seen.is_primary && !seen.slots.is_empty());
            let mut primaries: Vec<_> = owning.filter_map(|seen| self.node_at(seen.addr)).collect();
            primaries.sort_unstable();
            Some(primaries)
        })
        .await
    }

    /// Returns the keys of all running primaries, sorted.
    pub async fn keys(&self) -> Result<Vec<Vec<u8>>, LabError> {
        let mut keys = BTreeSet::new();
        for node in self.primaries().await? {
            if self.node(node).runs() {
                keys.extend(self.node(node).keys().await?);
            }
        }
        Ok(keys.into_iter().collect())
    }

    /// Lets a replica take over from its primary, which hands over all its data first
    /// (`CLUSTER FAILOVER`), and waits until it has.
    ///
    /// Fails if the node is no replica, or its primary is down.
    pub async fn fail_over(&self, replica: usize) -> Result<(), LabError> {
        let ask = || self.node(replica).command(&[b"CLUSTER", b"FAILOVER"]);
        ask().await?;
        let what = "waiting for a failover by hand";
        let is_primary = || async { self.view(replica).await?.me()?.is_primary.then_some(()) };
        until(what, || async {
            let took_over = timeout(GIVEN_UP, until(what, is_primary)).await;
            if took_over.is_err() {
                drop(ask().await);
            }
            took_over.ok()?.ok()
        })
        .await
    }

    /// A stopped node says nothing.
    async fn owner_now(&self, slot: u16) -> Option<usize> {
        let mut owners = BTreeSet::new();
        for node in self.running() {
            if let Some(view) = self.view(node).await {
                owners.insert(self.node_at(view.owner_of(slot)?.addr)?);
            }
        }
        let owner = owners.pop_first().filter(|_| owners.is_empty())?;
        self.node(owner).runs().then_some(owner)
    }

    /// All nodes that reply say that the cluster serves.
    async fn serves(&self) -> Option<()> {
        for node in self.running() {
            let info = view::ask(self.node(node), &[b"CLUSTER", b"INFO"]).await;
            info.is_none_or(|info| info.contains("cluster_state:ok")).then_some(())?;
        }
        Some(())
    }

    async fn failover_is_possible(&self) -> Option<()> {
        self.serves().await?;
        for node in self.running() {
            let view = self.view(node).await?;
            let known = view.nodes.iter().filter(|seen| !seen.is_failing).count();
            (known >= self.running().count()).then_some(())?;
            let me = view.me()?;
            if let Some(primary) = me.primary.as_deref() {
                let primary = view.nodes.iter().find(|seen| seen.id == primary)?;
                self.has_data_of(node, self.node_at(primary.addr)?).await?;
            }
        }
        Some(())
    }

    /// A link that is up is not enough: at first, a primary keeps what it writes to itself.
    async fn has_data_of(&self, replica: usize, primary: usize) -> Option<()> {
        let info = async |node| view::ask(self.node(node), &[b"INFO", b"replication"]).await;
        let offset = view::number(&info(primary).await?, "master_repl_offset")?;
        let replica = info(replica).await?;
        let has = view::number(&replica, "slave_repl_offset")?;
        (replica.contains("master_link_status:up") && has >= offset).then_some(())
    }

    async fn view(&self, node: usize) -> Option<View> {
        View::of(self.node(node)).await
    }

    async fn any_view(&self) -> Option<View> {
        for node in self.running() {
            if let Some(view) = self.view(node).await {
                return Some(view);
            }
        }
        None
    }

    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| self.node(*node).runs())
    }

    /// The nodes name each other's ports without TLS to whom asks without TLS, as the lab does.
    fn node_at(&self, addr: SocketAddr) -> Option<usize> {
        self.nodes.iter().position(|node| node.control() == addr)
    }
}

fn first_slots(primary: usize) -> Range<u16> {
    let share = |primary: usize| {
        (usize::from(RedisCluster::SLOTS) * primary / RedisCluster::PRIMARIES) as u16
    };
    share(primary)..share(primary + 1)
}
