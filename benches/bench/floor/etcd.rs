//! etcd: one transaction that puts a key if it is absent, one delete.

use std::sync::Arc;

use lock_etcd::client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp};

use crate::bench::{Load, Pair};

pub async fn pair(address: &str) -> Arc<dyn Load> {
    let mut client = Client::connect([address], None).await.expect("etcd");
    let lease = client.lease_grant(60, None).await.expect("a lease").id();
    Arc::new(move |task: usize| {
        let client = client.clone();
        let key = format!("floor/{task}");
        let pair: Pair = Box::new(move || {
            let (mut kv, key) = (client.kv_client(), key.clone());
            Box::pin(async move {
                let put =
                    TxnOp::put(key.clone(), "floor", Some(PutOptions::new().with_lease(lease)));
                let absent = Compare::create_revision(key.clone(), CompareOp::Equal, 0);
                let created =
                    kv.txn(Txn::new().when([absent]).and_then([put])).await.expect("a transaction");
                assert!(created.succeeded());
                kv.delete(key, None).await.expect("a delete");
            })
        });
        pair
    })
}
