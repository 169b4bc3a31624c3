//! A node of ZooKeeper's tree, seen from one server.

use std::sync::Arc;

use async_trait::async_trait;
use lock_lab::Side;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::{limited::limited, probe::Probe};
use crate::Failure;

pub(super) struct ZooKeeperProbe {
    client: Client,
    path: String,
    side: Arc<Side>,
}

impl ZooKeeperProbe {
    pub(super) async fn new(addr: String, key: &str, side: &Arc<Side>) -> Result<Self, Failure> {
        let path = format!("/{}", key.replace('/', "-"));
        let connect = async move { Ok(Client::connect(&addr).await?) };
        Ok(Self { client: limited(side, connect).await?, path, side: side.clone() })
    }
}

#[async_trait]
impl Probe for ZooKeeperProbe {
    async fn write(&self, value: &'static str) -> Result<(), Failure> {
        let (client, path) = (self.client.clone(), self.path.clone());
        let write = async move {
            match client.set_data(&path, value.as_bytes(), None).await {
                Err(Error::NoNode) => {
                    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
                    client.create(&path, value.as_bytes(), &mode).await?;
                    Ok(())
                }
                written => Ok(written.map(drop)?),
            }
        };
        limited(&self.side, write).await
    }

    async fn read(&self, of_majority: bool) -> Result<String, Failure> {
        let (client, path) = (self.client.clone(), self.path.clone());
        let read = async move {
            if of_majority {
                client.sync(&path).await?;
            }
            Ok(client.get_data(&path).await?.0)
        };
        Ok(String::from_utf8(limited(&self.side, read).await?)?)
    }
}
