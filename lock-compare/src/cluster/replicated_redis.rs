//! A Redis primary with replicas that either get its writes, or get none.

use std::time::Duration;

use lock_lab::RedisSentinels;
use tokio::time::sleep;

use crate::Failure;

/// Silence after which a sentinel takes the primary for dead.
const DOWN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct ReplicatedRedis {
    pub(crate) servers: RedisSentinels,
    pub(crate) primary: usize,
    is_late: bool,
}

impl ReplicatedRedis {
    /// Starts them. Late replicas get no writes from now on.
    pub(crate) async fn start(is_late: bool) -> Result<Self, Failure> {
        let servers = RedisSentinels::builder().down_after(DOWN).start().await?;
        let primary = servers.primary().await?;
        if is_late {
            for replica in servers.replicas_of(primary) {
                servers.pause_replication(replica).await?;
            }
        }
        Ok(Self { servers, primary, is_late })
    }

    /// Kills the primary. Before that, replicas that are not late get all writes.
    pub(crate) async fn kill_primary(&self) -> Result<(), Failure> {
        if !self.is_late {
            self.until_replicated().await?;
        }
        self.servers.node(self.primary).kill();
        Ok(())
    }

    /// Waits until the sentinels have promoted a replica.
    ///
    /// Fails if they promote none within 60 s.
    pub(crate) async fn promoted(&self) -> Result<(), Failure> {
        self.servers.primary_after(self.primary).await?;
        Ok(())
    }

    async fn until_replicated(&self) -> Result<(), Failure> {
        let keys = self.servers.node(self.primary).keys().await?;
        for replica in self.servers.replicas_of(self.primary) {
            while self.servers.node(replica).keys().await? != keys {
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}
