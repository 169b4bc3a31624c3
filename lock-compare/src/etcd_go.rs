//! The lock of etcd's Go package `concurrency`, step by step through the bare client.

use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, SortOrder, SortTarget, Txn,
    TxnOp, TxnOpResponse,
};

use crate::Failure;

/// A session: a lease. Nothing keeps it alive, so its TTL must be longer than its use.
pub(crate) struct GoSession {
    client: Client,
    lease: i64,
}

impl GoSession {
    /// A session on the server of distlock's URL.
    pub(crate) async fn start(url: &str, ttl: Duration) -> Result<Self, Failure> {
        let endpoint = url.replace("etcd://", "http://");
        let mut client = Client::connect([endpoint], None).await?;
        let ttl = i64::try_from(ttl.as_secs())?;
        let lease = client.lease_grant(ttl, None).await?.id();
        Ok(Self { client, lease })
    }

    /// `Mutex.TryLock`: whether the caller may believe that it holds the lock. Its key is the name and
    /// the session's lease, so a second call finds the key of the first.
    pub(crate) async fn try_lock(&mut self, name: &str) -> Result<bool, Failure> {
        let (key, prefix) = (self.key(name), format!("{name}/"));
        let put = TxnOp::put(key.clone(), "", Some(PutOptions::new().with_lease(self.lease)));
        let get = TxnOp::get(key.clone(), None);
        let first = GetOptions::new().with_prefix().with_limit(1);
        let first = first.with_sort(SortTarget::Create, SortOrder::Ascend);
        let owner = TxnOp::get(prefix, Some(first));
        let absent = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
        let txn = Txn::new().when([absent]).and_then([put, owner.clone()]).or_else([get, owner]);
        let answers = self.client.txn(txn).await?.op_responses();
        let Some(TxnOpResponse::Get(owner)) = answers.last() else {
            return Err("etcd does not answer with the owner".into());
        };
        let is_owner = owner.kvs().first().is_none_or(|owner| owner.key() == key.as_bytes());
        if !is_owner {
            self.unlock(name).await?;
        }
        Ok(is_owner)
    }

    /// `Mutex.Unlock`: deletes the key, whoever of the session's callers made it.
    pub(crate) async fn unlock(&mut self, name: &str) -> Result<(), Failure> {
        self.client.delete(self.key(name), None::<DeleteOptions>).await?;
        Ok(())
    }

    /// `Session.Close`.
    pub(crate) async fn close(mut self) -> Result<(), Failure> {
        self.client.lease_revoke(self.lease).await?;
        Ok(())
    }

    fn key(&self, name: &str) -> String {
        format!("{name}/{:x}", self.lease)
    }
}
