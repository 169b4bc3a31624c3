//! Keys in etcd, through the bare client. A key with an expiry has its own lease.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use etcd_client::{
    Client, Compare, CompareOp, EventType, GetOptions, GetResponse, PutOptions, Txn, TxnOp,
    WatchOptions,
};

use crate::{Failure, KeySpace, Keys, Nature};

#[derive(Clone, Debug)]
pub(crate) struct EtcdKeys(String);

impl EtcdKeys {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let address = url.strip_prefix("etcd://").ok_or("an URL of etcd begins with etcd://")?;
        Ok(Self(address.to_owned()))
    }
}

#[async_trait]
impl KeySpace for EtcdKeys {
    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        Ok(Arc::new(Connected(Client::connect([&self.0], None).await?)))
    }
}

struct Connected(Client);

/// Whole seconds, as in etcd.
fn seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX).max(1)
}

fn value_of(answer: &GetResponse) -> Option<String> {
    let kv = answer.kvs().first()?;
    Some(String::from_utf8_lossy(kv.value()).into_owned())
}

impl Connected {
    async fn lease(&self, ttl: Duration) -> Result<i64, Failure> {
        Ok(self.0.lease_client().grant(seconds(ttl), None).await?.id())
    }

    async fn put_if(
        &self,
        compare: Compare,
        key: &str,
        value: &str,
        lease: Option<i64>,
    ) -> Result<bool, Failure> {
        let options = lease.map(|lease| PutOptions::new().with_lease(lease));
        let put = TxnOp::put(key, value, options);
        let txn = Txn::new().when([compare]).and_then([put]);
        Ok(self.0.kv_client().txn(txn).await?.succeeded())
    }

    async fn read(&self, key: &str) -> Result<GetResponse, Failure> {
        Ok(self.0.kv_client().get(key, None).await?)
    }
}

fn absent(key: &str) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, 0)
}

fn has(key: &str, value: &str) -> Compare {
    Compare::value(key, CompareOp::Equal, value)
}

#[async_trait]
impl Keys for Connected {
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure> {
        let lease = match ttl {
            Some(ttl) => Some(self.lease(ttl).await?),
            None => None,
        };
        let ours = self.put_if(absent(key), key, value, lease).await?;
        if let Some(lease) = lease.filter(|_| !ours) {
            self.0.lease_client().revoke(lease).await?;
        }
        Ok(ours)
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.0.kv_client().put(key, value, None).await?;
        Ok(())
    }

    async fn expire(&self, key: &str, ttl: Duration, of: Option<&str>) -> Result<bool, Failure> {
        let present = match of {
            Some(value) => Some(value.to_owned()),
            None => self.get(key).await?,
        };
        let Some(value) = present else { return Ok(false) };
        let lease = self.lease(ttl).await?;
        self.put_if(has(key, &value), key, &value, Some(lease)).await
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        let answer = self.read(key).await?;
        let Some(kv) = answer.kvs().first() else { return Ok(None) };
        if kv.lease() == 0 {
            return Ok(Some(None));
        }
        let left = self.0.lease_client().time_to_live(kv.lease(), None).await?.ttl();
        Ok(u64::try_from(left).ok().map(|left| Some(Duration::from_secs(left))))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        Ok(value_of(&self.read(key).await?))
    }

    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure> {
        let Some(value) = of else {
            return Ok(self.0.kv_client().delete(key, None).await?.deleted() > 0);
        };
        let txn = Txn::new().when([has(key, value)]).and_then([TxnOp::delete(key, None)]);
        Ok(self.0.kv_client().txn(txn).await?.succeeded())
    }

    /// Counts down by compare and swap.
    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure> {
        loop {
            let answer = self.read(key).await?;
            let revision = answer.kvs().first().map_or(0, |kv| kv.mod_revision());
            let left = value_of(&answer).map_or(Ok(0), |value| value.parse::<i64>())?;
            if unless_empty && left <= 0 {
                return Ok(None);
            }
            let unchanged = Compare::mod_revision(key, CompareOp::Equal, revision);
            if self.put_if(unchanged, key, &(left - 1).to_string(), None).await? {
                return Ok(Some(left - 1));
            }
        }
    }

    async fn gone(&self, key: &str) -> Result<bool, Failure> {
        let answer = self.read(key).await?;
        if answer.kvs().is_empty() {
            return Ok(true);
        }
        let revision = answer.header().map_or(0, |header| header.revision());
        let options = WatchOptions::new().with_start_revision(revision + 1);
        let mut events = self.0.watch_client().watch(key, Some(options)).await?;
        while let Some(answer) = events.message().await? {
            if answer.events().iter().any(|event| event.event_type() == EventType::Delete) {
                return Ok(true);
            }
        }
        Err("etcd has ended a watch".into())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let answer = self.0.kv_client().get(prefix, Some(options)).await?;
        let names = answer.kvs().iter().map(|kv| String::from_utf8_lossy(kv.key()).into_owned());
        Ok(names.collect())
    }
}
