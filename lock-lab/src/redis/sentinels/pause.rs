//! Replicas that get no writes.

use std::io;

use super::{RedisSentinels, until, view::Link};
use crate::{LabError, Network, Place};

/// The password of a replica that must not log in.
const WRONG: &[u8] = b"lock-lab-pause";

impl RedisSentinels {
    /// Keeps all later writes of a primary from a replica, until
    /// [`resume_replication`](Self::resume_replication), also over a failover. The sentinels still
    /// reach the replica, and can promote it.
    ///
    /// In a [`Network`], the replica is cut off from all other nodes, and its primary notices that
    /// after a silence. Without one, the replica ends its link and logs in with a wrong password
    /// from then on, so its primary knows at once.
    ///
    /// A sentinel promotes no replica whose link had been down for longer than 10 times
    /// `down_after` when it found the primary dead.
    ///
    /// Fails if the node is a primary.
    pub async fn pause_replication(&self, replica: usize) -> Result<(), LabError> {
        let node = self.node(replica);
        if self.leads(replica).await {
            let why = format!("node {replica} is a primary, and only a replica can be paused");
            let error = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(LabError::io("pausing a replica")(error));
        }
        if let Some((network, place, others)) = self.standing(replica) {
            return network.split(&[place], &others);
        }
        node.command(&[b"CONFIG", b"SET", b"masterauth", WRONG]).await?;
        node.command(&[b"CONFIG", b"REWRITE"]).await?;
        node.command(&[b"CLIENT", b"KILL", b"TYPE", b"master"]).await?;
        until("pausing a replica", || async {
            Link::of(node).await.filter(|link| !link.is_up).map(drop)
        })
        .await
    }

    /// Ends a [`pause_replication`](Self::pause_replication). In a [`Network`], this ends all cuts
    /// between the node and the other ones.
    ///
    /// It does not wait until the replica has the data: [`await_replicas`](Self::await_replicas)
    /// does.
    pub async fn resume_replication(&self, replica: usize) -> Result<(), LabError> {
        if let Some((network, place, others)) = self.standing(replica) {
            return others.into_iter().try_for_each(|other| network.heal_between(place, other));
        }
        let node = self.node(replica);
        let password = node.password.as_deref().unwrap_or_default().as_bytes();
        node.command(&[b"CONFIG", b"SET", b"masterauth", password]).await?;
        node.command(&[b"CONFIG", b"REWRITE"]).await.map(drop)
    }

    /// Returns the place of a node, and the places of the other nodes.
    fn standing(&self, node: usize) -> Option<(&Network, Place, Vec<Place>)> {
        let others = self.replicas_of(node).into_iter();
        let others = others.filter_map(|node| self.node(node).place()).collect();
        Some((self.network.as_ref()?, self.node(node).place()?, others))
    }
}
