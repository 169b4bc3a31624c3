//! ZooKeeper: create an ephemeral sequential node and list the directory, sent together; then
//! delete. A second way has names and data as long as distlock's.

use std::sync::Arc;

use distlock::zookeeper::client::{Acls, Client, CreateMode};

use crate::{Load, Pair};

pub async fn pair(address: &str) -> Arc<dyn Load> {
    load(address, "floor", "n-", "").await
}

pub async fn noting(address: &str) -> Arc<dyn Load> {
    load(address, "noting", "_c_00000000-0000-0000-0000-000000000000-lock-", super::NOTE).await
}

async fn load(
    address: &str,
    root: &'static str,
    stem: &'static str,
    data: &'static str,
) -> Arc<dyn Load> {
    let client = Client::connect(address).await.expect("zookeeper");
    let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create(&format!("/{root}"), b"", &directory).await.expect("a directory");
    for task in 0..64 {
        client.create(&format!("/{root}/{task}"), b"", &directory).await.expect("a directory");
    }
    Arc::new(move |task: usize| {
        let (client, parent) = (client.clone(), format!("/{root}/{task}"));
        let pair: Pair = Box::new(move || {
            let (client, parent) = (client.clone(), parent.clone());
            Box::pin(async move {
                let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
                let path = format!("{parent}/{stem}");
                // Both requests are queued before either is awaited.
                let (create, list) = (
                    client.create(&path, data.as_bytes(), &options),
                    client.list_children(&parent),
                );
                let (_, sequence) = create.await.expect("create");
                assert_eq!(list.await.expect("list").len(), 1);
                client.delete(&format!("{path}{sequence}"), None).await.expect("delete");
            })
        });
        pair
    })
}
