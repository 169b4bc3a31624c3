//! A lock without an expiry: the first client that creates the key, the node or the row holds it
//! until a client deletes it. Its unlock does not check the owner.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Contestant, Failure, Give, KeySpace, Keys, Nature, Player, Printed, Stage, Store, Take,
    keys::{self, SimulatedKeys},
};

/// The lock on one store. On the embedded stores it is a simulation.
#[derive(Clone)]
pub(crate) struct Endless {
    store: Store,
    keys: Arc<dyn KeySpace>,
}

impl Endless {
    pub(crate) async fn on(stage: &Stage) -> Result<Self, Failure> {
        if stage.store.is_embedded() {
            return Ok(Self { store: stage.store, keys: Arc::new(SimulatedKeys::default()) });
        }
        Self::at(stage.store, &stage.shared().await?.url()).await
    }

    pub(crate) async fn at(store: Store, url: &str) -> Result<Self, Failure> {
        let keys: Arc<dyn KeySpace> = match store {
            // Its nodes need no session, but its clients do.
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper => Arc::new(keys::ZooKeeperKeys::new(url)?.lasting()),
            _ => keys::of(store, url).await?,
        };
        Ok(Self { store, keys })
    }

    /// Connects to the keys that the lock consists of.
    pub(crate) async fn keys(&self) -> Result<Arc<dyn Keys>, Failure> {
        self.keys.connect().await
    }
}

#[async_trait]
impl Contestant for Endless {
    fn label(&self) -> String {
        let lock = match self.store {
            Store::Redis => "SETNX without EXPIRE, bare DEL",
            Store::Etcd => "a key without a lease",
            Store::ZooKeeper => "a persistent node",
            Store::MySql | Store::Postgres => "a row with a unique key and no expiry",
            Store::Sqlite | Store::Memory => "a key without an expiry",
        };
        lock.to_owned()
    }

    fn nature(&self) -> Nature {
        match self.store {
            Store::Redis | Store::MySql => Nature::AsPrinted,
            Store::Sqlite | Store::Memory => Nature::Simulation,
            _ => Nature::Imitation,
        }
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Printed::new(self.keys.clone(), Take::NoExpiry, Give::BareDel).client().await
    }
}
