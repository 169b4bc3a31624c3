//! A key of etcd, seen from one node.

use std::sync::Arc;

use async_trait::async_trait;
use etcd_client::{Client, GetOptions};
use lock_lab::Side;

use super::{limited::limited, probe::Probe};
use crate::Failure;

pub(super) struct EtcdProbe {
    client: Client,
    key: String,
    side: Arc<Side>,
}

impl EtcdProbe {
    pub(super) async fn new(addr: String, key: String, side: &Arc<Side>) -> Result<Self, Failure> {
        let connect = async move { Ok(Client::connect([addr], None).await?) };
        Ok(Self { client: limited(side, connect).await?, key, side: side.clone() })
    }
}

#[async_trait]
impl Probe for EtcdProbe {
    async fn write(&self, value: &'static str) -> Result<(), Failure> {
        let (mut client, key) = (self.client.clone(), self.key.clone());
        limited(&self.side, async move { Ok(client.put(key, value, None).await.map(drop)?) }).await
    }

    async fn read(&self, of_majority: bool) -> Result<String, Failure> {
        let (mut client, key) = (self.client.clone(), self.key.clone());
        let options = GetOptions::new();
        let options = if of_majority { options } else { options.with_serializable() };
        let get = async move { Ok(client.get(key, Some(options)).await?) };
        let answer = limited(&self.side, get).await?;
        let found = answer.kvs().first().ok_or("the key is not there")?;
        Ok(found.value_str()?.to_owned())
    }
}
