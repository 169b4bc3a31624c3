//! The executable properties on a Redis Cluster, with every kind of lock that acts as an exclusive
//! one.

use std::collections::BTreeMap;

use lock_lab::{Network, RedisCluster};

use crate::deployed::{self, Lab, Servers};

type Tested = Result<(), Box<dyn std::error::Error>>;

async fn cluster(network: &Network) -> Result<Servers, lock_lab::LabError> {
    let builder = RedisCluster::builder().replicas(0).on(network);
    builder.start().await.map(Servers::Cluster)
}

pub async fn all_properties_are_kept() -> Tested {
    let network = Network::new()?;
    let shared = Lab::shared(network.clone(), cluster(&network).await?);
    let mut alone = Vec::new();
    for _ in 0..4 {
        let network = Network::new()?;
        alone.push(Lab::alone(network.clone(), cluster(&network).await?));
    }
    let skipped = deployed::skipped(shared, alone).await?;
    assert_eq!(skipped, BTreeMap::new());
    Ok(())
}
