//! Slow servers, and servers that lag.

use crate::{
    cluster,
    support::{beat::Beat, eventually, lab, open, outlives, soon},
};
use lock_lab::{Network, Proxy};
use std::{error::Error, time::Duration};

type Failure = Box<dyn Error + Send + Sync>;
const TICK: Duration = Duration::from_secs(2);
/// The shortest TTL that an ensemble of this tick is given.
const TTL: Duration = Duration::from_secs(6);

/// Renewals are confirmed all the time. They come late on a busy machine, so it runs as a test of
/// `alone`.
pub async fn a_lock_of_the_shortest_ttl_is_not_at_risk() -> Result<(), Failure> {
    let network = Network::new()?;
    let cluster = cluster(lab().tick(TICK), &network).await?;
    let (side, url) = (network.side()?, format!("{}?ttl=6s", cluster.url()));
    side.run(async move {
        let locks = open(&url).await;
        for _ in 0..5 {
            let (guard, beat) =
                (locks.lock("calm").unwrap().acquire().await.unwrap(), Beat::start());
            let left = tokio::select! {
                biased;
                left = guard.at_risk() => left,
                () = outlives(&guard, TTL * 2) => return guard.release().await.unwrap(),
            };
            // A machine that stands still confirms nothing.
            let late = beat.late();
            assert!(late >= TTL / 12, "{left:?} are left, and tasks are late by {late:?}");
        }
        panic!("the machine stood still each time");
    })
    .await;
    Ok(())
}

/// A round trip of 0.4 s proves 0.27 of this TTL at most, and renewals keep a lock with that.
pub async fn a_lock_of_the_shortest_ttl_is_granted_by_slow_servers() -> Result<(), Failure> {
    let network = Network::new()?;
    let cluster = cluster(lab().tick(TICK), &network).await?;
    let (side, addrs) =
        (network.side()?, cluster.nodes().iter().map(|n| n.addr()).collect::<Vec<_>>());
    side.run(async move {
        let mut slow = Vec::new();
        for addr in addrs {
            slow.push(Proxy::start(addr).await.unwrap());
        }
        let hosts: Vec<_> = slow.iter().map(|proxy| proxy.addr().to_string()).collect();
        let locks = open(&format!("zookeeper://{}?ttl=6s", hosts.join(","))).await;
        slow.iter().for_each(|proxy| proxy.delay(Duration::from_millis(200)));
        let guard = soon("the lock", locks.lock("slow").unwrap().acquire()).await.unwrap();
        outlives(&guard, TTL).await;
        guard.release().await.unwrap();
    })
    .await;
    Ok(())
}

/// The server of the reader that is left does not know yet that the other one has gone.
pub async fn a_reader_that_is_alone_is_upgraded_by_a_server_that_lags() -> Result<(), Failure> {
    let network = Network::new()?;
    // A follower that is cut off answers reads for 20 s.
    let cluster =
        cluster(lab().tick(Duration::from_secs(1)).setting("syncLimit", "20"), &network).await?;
    let leader = cluster.leader().await?;
    let lags = (leader + 1) % 3;
    let side = network.side()?;
    let (slow, fast) = (cluster.url_of(&[lags]), cluster.url_of(&[leader]));
    let (here, there) =
        side.run(async move { (open(&format!("{slow}?ttl=15s")).await, open(&fast).await) }).await;
    let first = here.shared("up")?.acquire();
    let mut first = side.run(async move { first.await.unwrap() }).await;
    let second = there.shared("up")?.acquire();
    let second = side.run(async move { second.await.unwrap() }).await;
    let seen = here.clone();
    side.run(async move {
        eventually("both are seen", async || seen.inspect("up").await.unwrap().len() == 2).await;
    })
    .await;
    network.cut(cluster.place(lags), cluster.place(leader))?;
    side.run(async move { second.release().await.unwrap() }).await;
    let before = cluster.node(lags).counters().await?.get("packets_received");
    let upgrade = side.spawn(async move { (first.try_upgrade().await.unwrap(), first) });
    eventually("it was refused, or asks on", async || {
        let now = cluster.node(lags).counters().await.unwrap().get("packets_received");
        upgrade.is_finished() || now >= before + 3
    })
    .await;
    network.heal()?;
    let (upgraded, guard) = soon("the upgrade", upgrade).await?;
    assert!(upgraded, "nobody else was there");
    side.run(async move { guard.release().await.unwrap() }).await;
    Ok(())
}
