//! The floor: the least that the bare client crate must do for a lock, without any of its promises.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::sync::Arc;

use super::Load;

/// One floor of a store.
pub struct Floor {
    what: &'static str,
    load: Arc<dyn Load>,
}

impl Floor {
    /// The floors of a store; Redis has two.
    pub async fn of(store: &str, url: &str) -> Vec<Self> {
        let address = url.split_once("://").map_or(url, |(_, address)| address);
        match store {
            #[cfg(feature = "etcd")]
            "etcd" => vec![Self { what: "floor: txn + delete", load: etcd::pair(address).await }],
            #[cfg(feature = "redis")]
            "redis" => vec![
                Self {
                    what: "floor: SET NX PX + compare-and-delete",
                    load: redis::pair(address).await,
                },
                Self {
                    what: "floor: scripts that touch as many keys",
                    load: redis::scripts(address).await,
                },
            ],
            #[cfg(feature = "zookeeper")]
            "zookeeper" => {
                vec![Self {
                    what: "floor: create + list, delete",
                    load: zookeeper::pair(address).await,
                }]
            }
            other => panic!("no floor for {other} at {address}"),
        }
    }

    pub fn what(&self) -> &'static str {
        self.what
    }

    pub fn pair(&self) -> Arc<dyn Load> {
        self.load.clone()
    }
}
