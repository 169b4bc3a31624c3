//! The recipe of ZooKeeper, through the bare client.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix, OwnedLockClient};

use crate::{Contestant, Failure, Granted, Hold, Nature, Player};

/// Limit of a bare try: the recipe has no other way to try.
const TRY: Duration = Duration::from_millis(500);
/// Limit for opening one connection.
const LIMIT: Duration = Duration::from_secs(5);

/// The bare client's lock: ZooKeeper's recipe with ephemeral sequential nodes. A client has one
/// session per lock, with the TTL as its timeout.
#[derive(Clone)]
pub(crate) struct ZooKeeperLock(String);

impl ZooKeeperLock {
    /// The lock of the servers at these addresses, separated by commas.
    pub(crate) fn new(addrs: String) -> Self {
        Self(addrs)
    }
}

#[async_trait]
impl Contestant for ZooKeeperLock {
    fn label(&self) -> String {
        "ZooKeeper's recipe".into()
    }

    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Player for ZooKeeperLock {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let connecting = Client::connector().with_session_timeout(ttl).connect(&self.0);
        let client = timeout(LIMIT, connecting).await??;
        let parent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parent)?;
        let folder = format!("/{name}");
        let prefix = LockPrefix::new_curator(&folder, "lock-")?;
        match timeout(wait.max(TRY), client.lock(prefix, b"", options)).await {
            Ok(lock) => Ok(Some(Box::new(Held(lock?.into_owned())))),
            Err(_) => Ok(None),
        }
    }
}

struct Held(OwnedLockClient);

#[async_trait]
impl Hold for Held {
    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        let Self(lock) = *self;
        let client = lock.client().clone();
        let deleted = timeout(LIMIT, client.delete(lock.lock_path(), None)).await;
        std::mem::forget(lock);
        Ok(deleted?.map(|()| true)?)
    }
}
