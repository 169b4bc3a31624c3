//! etcd: one transaction that puts a key if it is absent, and one delete. The second floor compares
//! and reads what distlock's transactions do.

use async_trait::async_trait;
use etcd_client::{
    Compare, CompareOp, ConnectOptions, DeleteOptions, GetOptions, KvClient, PutOptions, Txn, TxnOp,
};

use super::{NOTE, own};
use crate::{
    Failure,
    contender::{Asked, Client, Opening, Role, Worker},
};

/// A lease that nothing needs to renew, in seconds.
const LEASE: i64 = 3600;

pub(in crate::contender) fn open(Asked { url, role, .. }: Asked) -> Opening {
    Box::pin(async move {
        let password = url.password().unwrap_or_default();
        let login = url.user().map(|user| ConnectOptions::new().with_user(user, password));
        let mut client = etcd_client::Client::connect(url.hosts(2379), login).await?;
        let lease = client.lease_grant(LEASE, None).await?.id();
        let prefix = url.options().text("prefix").unwrap_or_default().to_owned();
        // Stands for the key of distlock's session.
        let key = format!("{prefix}bench#{lease:x}");
        client.put(key.as_str(), "", Some(PutOptions::new().with_lease(lease))).await?;
        let found = client.get(key.as_str(), None).await?;
        let epoch = found.kvs().first().map_or(0, |kv| kv.mod_revision());
        let session = (role == Role::FloorKeys).then_some((key, epoch));
        Ok(Box::new(Leased { client, lease, session, prefix }) as Box<dyn Client>)
    })
}

struct Leased {
    client: etcd_client::Client,
    lease: i64,
    /// The session's key and its revision, for the floor that has all keys.
    session: Option<(String, i64)>,
    prefix: String,
}

#[async_trait]
impl Client for Leased {
    async fn worker(&self, name: &str, _: bool) -> Result<Box<dyn Worker>, Failure> {
        let (kv, lease, session) = (self.client.kv_client(), self.lease, self.session.clone());
        let queue = format!("{}{}/", self.prefix, own(name));
        let key = format!("{queue}{lease:x}.0");
        Ok(Box::new(Entry { kv, lease, session, queue, key, revision: 0 }))
    }

    async fn close(self: Box<Self>) -> Result<(), Failure> {
        let Self { mut client, lease, .. } = *self;
        client.lease_revoke(lease).await?;
        Ok(())
    }
}

struct Entry {
    kv: KvClient,
    lease: i64,
    session: Option<(String, i64)>,
    queue: String,
    key: String,
    /// The revision of the entry that stands.
    revision: i64,
}

#[async_trait]
impl Worker for Entry {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let key = self.key.as_str();
        let absent = Compare::create_revision(key, CompareOp::Equal, 0);
        let note = if self.session.is_some() { NOTE } else { "bench" };
        let put = TxnOp::put(key, note, Some(PutOptions::new().with_lease(self.lease)));
        let txn = match &self.session {
            None => Txn::new().when([absent]).and_then([put]),
            Some((session, epoch)) => {
                let keys = GetOptions::new().with_prefix().with_keys_only();
                let list = TxnOp::get(self.queue.as_str(), Some(keys));
                let lives = Compare::mod_revision(session.as_str(), CompareOp::Equal, *epoch);
                let absent = absent.with_range(format!("{key}/"));
                Txn::new().when([lives, absent]).and_then([list, put])
            }
        };
        let answer = self.kv.txn(txn).await?;
        if !answer.succeeded() {
            return Err(format!("etcd has {} already", self.key).into());
        }
        self.revision = answer.header().map_or(0, |header| header.revision());
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let key = self.key.as_str();
        if self.session.is_none() {
            self.kv.delete(key, None).await?;
            return Ok(());
        }
        let stands = Compare::create_revision(key, CompareOp::Equal, self.revision);
        let delete = TxnOp::delete(key, Some(DeleteOptions::new().with_range(format!("{key}/"))));
        match self.kv.txn(Txn::new().when([stands]).and_then([delete])).await?.succeeded() {
            true => Ok(()),
            false => Err(format!("etcd does not have {} any more", self.key).into()),
        }
    }
}
