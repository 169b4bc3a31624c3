//! The executable properties on a primary with replicas and sentinels, with every kind of lock that
//! acts as an exclusive one.

use std::{collections::BTreeMap, time::Duration};

use lock_lab::{Network, RedisSentinels};

use crate::deployed::{self, Lab, Servers};

type Tested = Result<(), Box<dyn std::error::Error>>;

async fn sentinels(network: &Network) -> Result<Servers, lock_lab::LabError> {
    // No failover: each check counts what is left on one server.
    let builder = RedisSentinels::builder().down_after(Duration::from_secs(60)).on(network);
    builder.start().await.map(Servers::Sentinel)
}

pub async fn all_properties_are_kept() -> Tested {
    let network = Network::new()?;
    let shared = Lab::shared(network.clone(), sentinels(&network).await?);
    let mut alone = Vec::new();
    for _ in 0..4 {
        let network = Network::new()?;
        alone.push(Lab::alone(network.clone(), sentinels(&network).await?));
    }
    let skipped = deployed::skipped(shared, alone).await?;
    assert_eq!(skipped, BTreeMap::new());
    Ok(())
}
