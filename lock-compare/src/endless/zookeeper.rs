//! A ZooKeeper node without a session.

use async_trait::async_trait;
use lock_core::StoreUrl;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::Things;
use crate::Failure;

pub(super) struct Node(Client);

impl Node {
    pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
        let url = StoreUrl::parse(url)?;
        let chroot = Some(url.path()).filter(|path| !path.is_empty());
        let chroot = chroot.map(|path| format!("/{path}")).unwrap_or_default();
        Ok(Self(Client::connect(&format!("{}{chroot}", url.hosts(2181).join(","))).await?))
    }
}

/// One node without own parents.
fn path(name: &str) -> String {
    format!("/{}", name.replace('/', "-"))
}

#[async_trait]
impl Things for Node {
    async fn create(&self, name: &str) -> Result<bool, Failure> {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        match self.0.create(&path(name), b"taken", &persistent).await {
            Ok(_) => Ok(true),
            Err(Error::NodeExists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        match self.0.delete(&path(name), None).await {
            Ok(()) => Ok(true),
            Err(Error::NoNode) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
