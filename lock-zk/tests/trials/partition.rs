//! Three servers, and clients on the side of the minority.

use std::{error::Error, time::Duration};

use futures_util::future::join_all;
use lock_core::{Clock, Instant, LockGuard, Locks, LossReason, Overlap};
use lock_lab::{Network, Place, Side, ZooKeeperCluster};

use crate::{
    cluster,
    support::{PATIENCE, SHORT, lab, open, outlives, patient, soon},
};

type Outcome = Result<(), Box<dyn Error>>;

/// Followers and leaders leave each other after 2 s.
const SYNC_LIMIT: &str = "4";

/// Servers that grant long sessions, too.
async fn impatient(network: &Network) -> Result<ZooKeeperCluster, Box<dyn Error>> {
    let builder = lab().setting("syncLimit", SYNC_LIMIT).setting("maxSessionTimeout", "40000");
    Ok(cluster(builder, network).await?)
}

/// A client with a place of its own in the network.
struct Client {
    side: Side,
    locks: Locks,
}

impl Client {
    async fn start(network: &Network, url: String) -> Result<Self, Box<dyn Error>> {
        let side = network.side()?;
        let locks = side.run(async move { open(&url).await }).await;
        Ok(Self { side, locks })
    }

    fn place(&self) -> Place {
        self.side.place()
    }

    /// Acquires. Returns when, and a task that waits for the loss and returns when it was told.
    async fn hold(&self, name: &str) -> (Instant, tokio::task::JoinHandle<(LossReason, Instant)>) {
        let acquire = self.locks.lock(name).unwrap().ttl(SHORT).acquire();
        let guard = self.side.run(async move { acquire.await.unwrap() }).await;
        let granted = Clock::Boot.now();
        let told = self.side.spawn(async move {
            let reason = guard.lost().await;
            (reason, Clock::Boot.now())
        });
        (granted, told)
    }
}

/// Cuts a holder off together with the only server that it knows, and expects it to be told before
/// the next one holds.
async fn cut_off_with(network: &Network, cluster: &ZooKeeperCluster, node: usize) -> Outcome {
    let others: Vec<_> = (0..3).filter(|other| *other != node).collect();
    let holder = Client::start(network, cluster.url_of(&[node]) + "?ttl=2s").await?;
    // Its wait lasts through an election on a busy machine.
    let next = Client::start(network, cluster.url_of(&others) + "?ttl=30s").await?;
    let (_, told) = holder.hold("minority").await;
    let acquire = next.locks.lock("minority")?.acquire();
    let waiter = next.side.spawn(async move { (acquire.await, Clock::Boot.now()) });
    wait_for_two(&next).await;
    let mut majority: Vec<_> = others.iter().map(|node| cluster.place(*node)).collect();
    majority.push(next.place());
    let cut = Clock::Boot.now();
    network.split(&[holder.place(), cluster.place(node)], &majority)?;
    let (granted, held_at) = soon("the next one holds", waiter).await?;
    let guard = granted?;
    let (reason, told_at) = soon("the holder is told", told).await?;
    assert_eq!(reason, LossReason::Expired);
    assert!(
        told_at < held_at,
        "told {:?} after the cut and {:?} after the next grant",
        told_at.since(cut),
        told_at.since(held_at)
    );
    network.heal()?;
    next.side.run(async move { guard.release().await }).await?;
    Ok(())
}

async fn wait_for_two(client: &Client) {
    let (locks, start) = (client.locks.clone(), Clock::Boot.now());
    let wait = async move {
        while locks.inspect("minority").await.unwrap().len() < 2 {
            assert!(Clock::Boot.now().since(start) < PATIENCE, "nobody waits");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    client.side.run(wait).await;
}

/// The follower answers reads of its clients for 2 s after the cut, and the leader ends the session
/// after 2 s.
pub async fn a_holder_beside_a_cut_off_follower_is_told_before_the_next_grant() -> Outcome {
    let network = Network::new()?;
    let cluster = impatient(&network).await?;
    let leader = cluster.leader().await?;
    cut_off_with(&network, &cluster, (leader + 1) % 3).await
}

/// The leader answers its clients, and takes itself for the leader, until it misses its followers.
pub async fn a_holder_beside_a_cut_off_leader_is_told_before_the_next_grant() -> Outcome {
    let network = Network::new()?;
    let cluster = impatient(&network).await?;
    let leader = cluster.leader().await?;
    cut_off_with(&network, &cluster, leader).await
}

/// A session lives on through an election, and holders notice nothing.
pub async fn holding_survives_the_end_of_the_leader() -> Outcome {
    /// In seconds. Longer than an election on a busy machine.
    const TTL: u64 = 15;
    let network = Network::new()?;
    let cluster = cluster(lab().tick(Duration::from_secs(2)), &network).await?;
    let holder = Client::start(&network, format!("{}?ttl={TTL}s", cluster.url())).await?;
    let acquire = holder.locks.lock("elected")?.acquire();
    let guard = holder.side.run(acquire).await?;
    let leader = cluster.leader().await?;
    cluster.node(leader).kill();
    cluster.leader_after(leader).await?;
    // By the new leader, which would end a session that it does not hear of.
    outlives(&guard, Duration::from_secs(TTL)).await;
    holder.side.run(async move { guard.release().await }).await?;
    Ok(())
}

/// Clients that hold a lock each.
async fn holders(
    network: &Network,
    url: &str,
    count: usize,
) -> Result<Vec<(Client, LockGuard)>, Box<dyn Error>> {
    let mut holders = Vec::new();
    for number in 0..count {
        let client = Client::start(network, url.to_owned()).await?;
        let acquire = client.locks.lock(format!("kept-{number}"))?.acquire();
        let guard = client.side.run(acquire).await?;
        holders.push((client, guard));
    }
    Ok(holders)
}

/// It is cut off and does not end, so connections to it are never refused. Its clients leave it in
/// time, also those that pick it again.
pub async fn holding_survives_the_silence_of_a_follower() -> Outcome {
    const TTL: Duration = Duration::from_secs(8);
    let network = Network::new()?;
    let cluster = cluster(lab(), &network).await?;
    let url = format!("{}?ttl={}s", cluster.url(), TTL.as_secs());
    let holders = holders(&network, &url, 8).await?;
    for round in 0..lock_lab::size(3, 12) {
        let leader = cluster.leader().await?;
        let silent = (leader + 1 + usize::from(round % 2 == 0)) % 3;
        network.isolate(cluster.place(silent))?;
        join_all(holders.iter().map(|(_, guard)| outlives(guard, TTL))).await;
        network.rejoin(cluster.place(silent))?;
        // It looks for a leader with pauses that grow up to a minute.
        cluster.node(silent).restart().await?;
    }
    Ok(())
}

/// The others miss it after 2 s, and then elect another one.
pub async fn holding_survives_the_silence_of_the_leader() -> Outcome {
    const TTL: Duration = Duration::from_secs(12);
    let network = Network::new()?;
    let cluster = impatient(&network).await?;
    let url = format!("{}?ttl={}s", cluster.url(), TTL.as_secs());
    let holders = holders(&network, &url, 8).await?;
    let leader = cluster.leader().await?;
    network.isolate(cluster.place(leader))?;
    join_all(holders.iter().map(|(_, guard)| outlives(guard, TTL))).await;
    Ok(())
}

/// The ensemble has lost the list of its members, as after a snapshot from when it stood alone.
pub async fn an_ensemble_that_does_not_know_its_members_is_no_standalone_server() -> Outcome {
    let network = Network::new()?;
    let cluster = cluster(lab().arg("-Dzookeeper.skipACL=yes"), &network).await?;
    let operator = network.side()?;
    let addr = cluster.node(0).addr().to_string();
    operator
        .run(async move {
            let raw = patient().connect(&addr).await.unwrap();
            raw.set_data("/zookeeper/config", b"", None).await.unwrap();
        })
        .await;
    let client = Client::start(&network, cluster.url()).await?;
    let guarantees = client.locks.guarantees();
    assert!(guarantees.overlaps.contains(&Overlap::LeaderStalled), "{guarantees:?}");
    Ok(())
}
