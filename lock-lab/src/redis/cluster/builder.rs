//! The options of a cluster, and its start.

use std::time::Duration;

use super::{Member, RedisCluster, first_slots, until};
use crate::{Builder, LabError, redis::group::RedisGroup};

/// Options for a [`RedisCluster`].
pub type RedisClusterBuilder = RedisGroup<Member>;

impl Default for RedisClusterBuilder {
    fn default() -> Self {
        let own = Member { node_timeout: Duration::from_secs(2) };
        Self { node: Builder::default(), replicas: 1, own }
    }
}

impl RedisClusterBuilder {
    /// Sets the silence after which a node is taken for dead, in whole milliseconds. Default: 2 s,
    /// since a loaded machine keeps a server silent for a while.
    pub fn node_timeout(mut self, node_timeout: Duration) -> Self {
        self.own.node_timeout = node_timeout;
        self
    }

    /// Demands a password from clients, and from the nodes among themselves. It is part of the URL.
    /// Default: none.
    pub fn password(mut self, password: &str) -> Self {
        self.node = self.node.password(password);
        self
    }

    /// Starts all nodes, and waits until a failover of each primary is possible. Takes 2 s to 3 s.
    pub async fn start(mut self) -> Result<RedisCluster, LabError> {
        self.node.options.member = Some(self.own);
        let mut nodes = Vec::new();
        for _ in 0..RedisCluster::PRIMARIES * (1 + self.replicas) {
            nodes.push(self.node.clone().start().await?);
        }
        let cluster = RedisCluster { nodes };
        cluster.meet().await?;
        until("joining a cluster", || cluster.all_know_all()).await?;
        for replica in RedisCluster::PRIMARIES..cluster.nodes.len() {
            cluster.follow(replica, replica % RedisCluster::PRIMARIES).await?;
        }
        until("waiting for replicas", || cluster.all_know_replicas()).await?;
        cluster.await_replicas().await?;
        Ok(cluster)
    }
}

impl RedisCluster {
    /// Shares the slots, and introduces the nodes to each other.
    async fn meet(&self) -> Result<(), LabError> {
        for (number, node) in self.nodes.iter().enumerate() {
            // Without epochs of their own, the nodes would argue for seconds.
            let epoch = (number + 1).to_string();
            node.command(&[b"CLUSTER", b"SET-CONFIG-EPOCH", epoch.as_bytes()]).await?;
            if number < Self::PRIMARIES {
                // ADDSLOTSRANGE came with Redis 7.0.
                let slots: Vec<_> = first_slots(number).map(|slot| slot.to_string()).collect();
                let order = [&b"CLUSTER"[..], b"ADDSLOTS"].into_iter();
                let order: Vec<_> = order.chain(slots.iter().map(String::as_bytes)).collect();
                node.command(&order).await?;
            }
        }
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            let bus =
                until("asking for a port", || async { Some(self.view(number).await?.me()?.bus) });
            let (addr, bus) = (node.addr(), bus.await?.to_string());
            let (host, port) = (addr.ip().to_string(), addr.port().to_string());
            let order =
                [&b"CLUSTER"[..], b"MEET", host.as_bytes(), port.as_bytes(), bus.as_bytes()];
            self.node(0).command(&order).await?;
        }
        Ok(())
    }

    async fn follow(&self, replica: usize, primary: usize) -> Result<(), LabError> {
        let primary = self.id_of(primary).await?;
        let order = [&b"CLUSTER"[..], b"REPLICATE", primary.as_bytes()];
        self.node(replica).command(&order).await.map(drop)
    }

    async fn all_know_all(&self) -> Option<()> {
        self.serves().await?;
        for node in 0..self.nodes.len() {
            let known = self.view(node).await?.nodes;
            let joined = known.iter().filter(|seen| !seen.is_failing).count();
            (joined == self.nodes.len()).then_some(())?;
        }
        Some(())
    }

    async fn all_know_replicas(&self) -> Option<()> {
        for node in 0..self.nodes.len() {
            let replicas = self.view(node).await?.nodes;
            let replicas = replicas.iter().filter(|seen| seen.primary.is_some()).count();
            (replicas == self.nodes.len() - Self::PRIMARIES).then_some(())?;
        }
        Some(())
    }
}
