//! The leader of three nodes is killed: the time until the next grant.

use std::time::Duration;

use lock_lab::{EtcdCluster, LabError, Network, RedisSentinels, Server, Side, ZooKeeperCluster};
use tokio::time::timeout;

use crate::{
    Failure, Figures, Progress, Row, Workload,
    clock::{SECOND, nanos, now},
    compute,
    contender::{Client, Worker, all::DISTLOCK},
    stage::Stage,
};

const LIMIT: Duration = Duration::from_secs(60);
/// Between two attempts while there is no leader.
const PAUSE: Duration = Duration::from_millis(5);

/// Three nodes that are one store.
enum Nodes {
    Etcd(EtcdCluster),
    ZooKeeper(ZooKeeperCluster),
    Redis(RedisSentinels),
}

/// A worker that can move to another thread and back.
struct Asking {
    worker: Box<dyn Worker>,
    client: Box<dyn Client>,
}

/// Whether there are three nodes of this store in the lab.
pub(crate) fn is_played(scheme: &str) -> bool {
    ["etcd", "zookeeper", "redis"].contains(&scheme)
}

/// A row per store that has a leader.
pub(crate) async fn rows(stage: &Stage<'_>, workload: &Workload) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for store in stage.stores.iter().filter(|store| is_played(store.scheme)) {
        let label = &store.label;
        match row(stage, store.scheme, label, workload).await {
            Ok(row) => rows.push(row),
            Err(failure) => stage.failed(&store.what(DISTLOCK.name, "leader"), failure)?,
        }
    }
    Ok(rows)
}

async fn row(
    stage: &Stage<'_>,
    scheme: &str,
    label: &str,
    workload: &Workload,
) -> Result<Row, Failure> {
    let (nodes, side) = start(scheme).await?;
    let mut asking = connect(&side, nodes.url(), workload.clone()).await?;
    let mut figures = Figures::default();
    for _ in 0..stage.options.rounds {
        (stage.progress)(Progress::Begins("leader", label, DISTLOCK.name));
        // Also gets over the change before.
        asking = next_grant(&side, asking).await?.0;
        let leader = nodes.leader().await?;
        let killed = now();
        nodes.node(leader).kill();
        let (again, granted) = next_grant(&side, asking).await?;
        asking = again;
        let time = granted.saturating_sub(killed);
        compute::add_time(&mut figures, time);
        (stage.progress)(Progress::Ended(SECOND as f64 / time.max(1) as f64));
        nodes.mend(leader).await?;
    }
    side.run(asking.client.close()).await?;
    Ok(Row::new(label, DISTLOCK.name, DISTLOCK.role, figures))
}

/// The nodes, and the place of their client.
async fn start(scheme: &str) -> Result<(Nodes, Side), Failure> {
    let network = Network::new()?;
    let nodes = match scheme {
        "etcd" => Nodes::Etcd(EtcdCluster::start(&network).await?),
        "zookeeper" => Nodes::ZooKeeper(ZooKeeperCluster::start(&network).await?),
        _ => Nodes::Redis(RedisSentinels::start_on(&network).await?),
    };
    Ok((nodes, network.side()?))
}

async fn connect(side: &Side, url: String, workload: Workload) -> Result<Asking, Failure> {
    side.run(async move {
        let client = DISTLOCK.open(&url, &workload).await?;
        let worker = client.worker("distlock-bench/leader", false).await?;
        Ok::<_, Failure>(Asking { worker, client })
    })
    .await
}

/// Asks until there is a grant, and gives the lock back. Errors are expected while nobody leads.
async fn next_grant(side: &Side, mut asking: Asking) -> Result<(Asking, u64), Failure> {
    side.run(async move {
        let end = now() + nanos(LIMIT);
        while now() < end {
            if let Ok(Ok(_)) = timeout(LIMIT, asking.worker.acquire()).await {
                let granted = now();
                // A lock that cannot be given back now ends with its TTL.
                let _ = asking.worker.release().await;
                return Ok::<_, Failure>((asking, granted));
            }
            lock_core::Clock::Boot.sleep(PAUSE).await;
        }
        Err(format!("no grant within {} s after the leader's death", LIMIT.as_secs()).into())
    })
    .await
}

impl Nodes {
    fn url(&self) -> String {
        match self {
            Self::Etcd(cluster) => cluster.url(),
            Self::ZooKeeper(cluster) => cluster.url(),
            Self::Redis(sentinels) => sentinels.url(),
        }
    }

    async fn leader(&self) -> Result<usize, LabError> {
        match self {
            Self::Etcd(cluster) => cluster.leader().await,
            Self::ZooKeeper(cluster) => cluster.leader().await,
            Self::Redis(sentinels) => sentinels.primary().await,
        }
    }

    fn node(&self, node: usize) -> &Server {
        match self {
            Self::Etcd(cluster) => cluster.node(node),
            Self::ZooKeeper(cluster) => cluster.node(node),
            Self::Redis(sentinels) => sentinels.node(node),
        }
    }

    /// Starts a killed node again, and waits until another one may be killed.
    async fn mend(&self, node: usize) -> Result<(), LabError> {
        self.node(node).restart().await?;
        match self {
            Self::Redis(sentinels) => sentinels.await_replicas().await,
            _ => Ok(()),
        }
    }
}
