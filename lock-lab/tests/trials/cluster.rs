//! Clusters of three nodes in a network.

use std::time::Duration;

use lock_lab::{Etcd, EtcdCluster, Network, ZooKeeper, ZooKeeperCluster, state_of};
use tokio::time::timeout;

use crate::support::{eventually, until};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// Longest time of a cluster without a leader on a loaded machine.
const ELECTION: Duration = Duration::from_secs(60);

async fn etcd_serves_and_survives_its_leader() -> Result {
    let network = Network::new()?;
    let etcd = EtcdCluster::start(&network).await?;
    let old = etcd.leader().await?;
    etcd.node(old).put(b"kept", b"1").await?;
    etcd.node(old).kill();
    let new = timeout(ELECTION, etcd.leader_after(old)).await??;
    until(|| async { etcd.node(new).put(b"written", b"2").await.is_ok() }).await;
    etcd.node(old).restart().await?;
    assert_eq!(etcd.node(old).keys().await?, [&b"kept"[..], b"written"]);
    Ok(())
}

async fn zookeeper_serves_and_survives_its_leader() -> Result {
    let network = Network::new()?;
    let zookeeper = ZooKeeperCluster::start(&network).await?;
    let old = zookeeper.leader().await?;
    zookeeper.node(old).kill();
    let new = timeout(ELECTION, zookeeper.leader_after(old)).await??;
    zookeeper.node(old).restart().await?;
    for node in [new, old] {
        until(|| serves(zookeeper.node(node))).await;
    }
    Ok(())
}

async fn serves(node: &ZooKeeper) -> bool {
    node.four_letter("srvr").await.is_ok_and(|reply| reply.contains("\nMode: "))
}

async fn an_etcd_leader_that_is_cut_off_serves_no_more() -> Result {
    let network = Network::new()?;
    let etcd = EtcdCluster::start(&network).await?;
    let old = etcd.leader().await?;
    network.split(&[etcd.place(old)], &etcd.peers(old))?;
    let new = etcd.leader_after(old).await?;
    until(|| async { etcd.node(new).put(b"key", b"1").await.is_ok() }).await;
    // The lab still reaches it. It needs its peers to write.
    let write = timeout(Duration::from_secs(1), etcd.node(old).put(b"key", b"2"));
    assert!(!matches!(write.await, Ok(Ok(()))));
    network.heal()?;
    until(|| async { etcd.node(old).keys().await.is_ok_and(|keys| keys == [b"key"]) }).await;
    Ok(())
}

async fn a_zookeeper_follower_that_hears_no_leader_serves_no_more() -> Result {
    let network = Network::new()?;
    let zookeeper = ZooKeeperCluster::start(&network).await?;
    let leader = zookeeper.leader().await?;
    let follower = (leader + 1) % 3;
    network.deafen(zookeeper.place(follower), zookeeper.place(leader))?;
    until(|| async { !serves(zookeeper.node(follower)).await }).await;
    network.heal()?;
    until(|| serves(zookeeper.node(follower))).await;
    Ok(())
}

async fn a_stopped_etcd_leader_is_replaced_and_serves_again_when_it_is_resumed() -> Result {
    let network = Network::new()?;
    let etcd = EtcdCluster::start(&network).await?;
    let old = etcd.leader().await?;
    etcd.node(old).stop();
    eventually("it is stopped", || state_of(etcd.node(old).pid()) == Some('T')).await;
    let new = etcd.leader_after(old).await?;
    until(|| async { etcd.node(new).put(b"key", b"1").await.is_ok() }).await;
    etcd.node(old).resume();
    until(|| async { etcd.node(old).keys().await.is_ok_and(|keys| keys == [b"key"]) }).await;
    Ok(())
}

async fn a_cluster_of_etcd_3_5_has_urls_in_the_order_that_is_asked_for() -> Result {
    let network = Network::new()?;
    let etcd = Etcd::builder().v3_5().start_cluster(&network).await?;
    assert!(etcd.node(0).version().await?.starts_with("3.5."));
    let [a, b, c] = [0, 1, 2].map(|node| etcd.node(node).addr());
    assert_eq!(etcd.url(), format!("etcd://{a},{b},{c}"));
    assert_eq!(etcd.url_of(&[2, 0]), format!("etcd://{c},{a}"));
    Ok(())
}

crate::trials!(
    etcd_serves_and_survives_its_leader,
    zookeeper_serves_and_survives_its_leader,
    an_etcd_leader_that_is_cut_off_serves_no_more,
    a_zookeeper_follower_that_hears_no_leader_serves_no_more,
    a_stopped_etcd_leader_is_replaced_and_serves_again_when_it_is_resumed,
    a_cluster_of_etcd_3_5_has_urls_in_the_order_that_is_asked_for,
);
