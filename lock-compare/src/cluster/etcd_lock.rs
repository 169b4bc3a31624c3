//! etcd's own lock, through the bare client.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use etcd_client::{Client, LockOptions};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{Contestant, Failure, Granted, Hold, Nature, Player};

/// Limit of a bare try: etcd's service has no other way to try.
const TRY: Duration = Duration::from_millis(500);
/// Limit of one request that does not wait for the lock.
const LIMIT: Duration = Duration::from_secs(5);

/// etcd's own lock service, which is the Go package `concurrency` inside the server. The lease is
/// kept alive every third of its TTL. The result of a keep-alive is ignored.
#[derive(Clone)]
pub(crate) struct EtcdLock(Vec<String>);

impl EtcdLock {
    pub(crate) fn new(addrs: Vec<String>) -> Self {
        Self(addrs)
    }
}

#[async_trait]
impl Contestant for EtcdLock {
    fn label(&self) -> String {
        "etcd's own lock service".into()
    }

    fn nature(&self) -> Nature {
        Nature::Program
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(Connected(Client::connect(&self.0, None).await?)))
    }
}

struct Connected(Client);

#[async_trait]
impl Player for Connected {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let mut client = self.0.clone();
        let seconds = i64::try_from(ttl.as_secs())?;
        let lease = timeout(LIMIT, client.lease_grant(seconds, None)).await??.id();
        let renewal = tokio::spawn(keep_alive(client.clone(), lease, ttl / 3)).abort_handle();
        let options = LockOptions::new().with_lease(lease);
        match timeout(wait.max(TRY), client.lock(name, Some(options))).await {
            Ok(locked) => {
                let key = locked?.key().to_vec();
                Ok(Some(Box::new(Held { client, key, renewal })))
            }
            Err(_) => {
                renewal.abort();
                timeout(LIMIT, client.lease_revoke(lease)).await??;
                Ok(None)
            }
        }
    }
}

/// Sends on any available connection: after the loss of a node, on the one of another node.
async fn keep_alive(mut client: Client, lease: i64, pause: Duration) {
    loop {
        if let Ok(Ok((mut keeper, mut answers))) =
            timeout(pause, client.lease_keep_alive(lease)).await
        {
            while keeper.keep_alive().await.is_ok()
                && matches!(timeout(pause, answers.message()).await, Ok(Ok(Some(_))))
            {
                sleep(pause).await;
            }
        }
        sleep(pause / 4).await;
    }
}

struct Held {
    client: Client,
    key: Vec<u8>,
    renewal: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

#[async_trait]
impl Hold for Held {
    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        let mut client = self.client.clone();
        timeout(LIMIT, client.unlock(self.key.clone())).await??;
        Ok(true)
    }
}
