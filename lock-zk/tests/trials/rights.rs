//! Three servers whose root belongs to an operator, and clients that may use the locks alone.

use std::{error::Error, time::Duration};

use lock_lab::Network;
use lock_zk::client::{Acl, Acls, AuthId, CreateMode, Permission};

use crate::{
    cluster,
    support::{lab, open, outlives, patient, soon},
};

/// Lasts on a busy machine.
const TTL: Duration = Duration::from_secs(4);
const OPERATOR: &str = "operator:s3cret";

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Lets other logins do no more than this in the root.
async fn close_root(url: String, others: Permission) -> Outcome {
    let hosts = url.trim_start_matches("zookeeper://");
    let connector = patient().with_auth("digest", OPERATOR.as_bytes());
    let operator = connector.connect(hosts).await?;
    let ours = Acl::new(Permission::ALL, AuthId::new("auth", ""));
    let acls = [ours, Acl::new(others, AuthId::anyone())];
    let acls = if others == Permission::NONE { &acls[..1] } else { &acls[..] };
    operator.set_acl("/", acls, None).await?;
    let visitor = patient().connect(hosts).await?;
    assert!(visitor.list_children("/").await.is_err(), "the root can be read");
    Ok(())
}

async fn keep(url: String) -> Outcome {
    let locks = open(&url).await;
    let guard = soon("it is granted", locks.lock("kept")?.ttl(TTL).acquire()).await?;
    outlives(&guard, TTL * 2).await;
    guard.release().await?;
    Ok(())
}

pub async fn a_root_that_cannot_be_read_costs_no_lock() -> Outcome {
    let network = Network::new()?;
    let cluster = cluster(lab(), &network).await?;
    let (side, url) = (network.side()?, cluster.url());

    // The directory of the locks does not exist, but may be created.
    side.run(close_root(url.clone(), Permission::CREATE)).await?;
    side.run(keep(format!("{url}?prefix=/own"))).await?;

    let raw_hosts = url.trim_start_matches("zookeeper://").to_owned();
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let made = async move { patient().connect(&raw_hosts).await?.mkdir("/locks", &open).await };
    side.run(made).await?;
    side.run(close_root(url.clone(), Permission::NONE)).await?;
    side.run(keep(url)).await
}
