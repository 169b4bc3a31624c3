//! etcd: one transaction that puts a key if it is absent, and one delete. A second way has as
//! many operations in its transaction as distlock has.

use std::sync::Arc;

use distlock::etcd::client::{Client, Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};

use crate::{Load, Pair};

pub async fn pair(address: &str) -> Arc<dyn Load> {
    load(address, "floor", false).await
}

/// Lists the queue before the put, and writes a holder's description as the value.
pub async fn listing(address: &str) -> Arc<dyn Load> {
    load(address, super::NOTE, true).await
}

async fn load(address: &str, value: &'static str, lists: bool) -> Arc<dyn Load> {
    let mut client = Client::connect([address], None).await.expect("etcd");
    let lease = client.lease_grant(60, None).await.expect("a lease").id();
    Arc::new(move |task: usize| {
        let client = client.clone();
        let (queue, key) = (format!("floor/{task}/"), format!("floor/{task}/{lease:x}.0"));
        let pair: Pair = Box::new(move || {
            let (mut kv, queue, key) = (client.kv_client(), queue.clone(), key.clone());
            Box::pin(async move {
                let keys = GetOptions::new().with_prefix().with_keys_only();
                let list = lists.then(|| TxnOp::get(queue, Some(keys)));
                let put = TxnOp::put(key.clone(), value, Some(PutOptions::new().with_lease(lease)));
                let absent = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
                let created = kv
                    .txn(
                        Txn::new()
                            .when([absent])
                            .and_then(list.into_iter().chain([put]).collect::<Vec<_>>()),
                    )
                    .await
                    .expect("a transaction");
                assert!(created.succeeded());
                kv.delete(key, None).await.expect("a delete");
            })
        });
        pair
    })
}
