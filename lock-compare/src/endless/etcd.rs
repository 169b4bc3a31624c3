//! A key of etcd without a lease.

use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};

use super::Things;
use crate::{Failure, concurrency::connect};

pub(super) struct Key(Client);

impl Key {
    pub(super) async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self(connect(url).await?))
    }
}

#[async_trait]
impl Things for Key {
    async fn create(&self, name: &str) -> Result<bool, Failure> {
        let is_new = Compare::create_revision(name, CompareOp::Equal, 0);
        let txn = Txn::new().when([is_new]).and_then([TxnOp::put(name, "taken", None)]);
        Ok(self.0.kv_client().txn(txn).await?.succeeded())
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.0.kv_client().delete(name, None).await?.deleted() > 0)
    }
}
