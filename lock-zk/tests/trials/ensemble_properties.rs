//! The properties of lock-core on three servers. Each check has a directory of its own, and each
//! client a proxy to each server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    LockName,
    properties::{Client, Failure, Harness, NotHere},
};
use lock_lab::{Network, Proxy, ZooKeeperCluster};
use lock_zk::client::Client as Raw;

use crate::{
    checks::{Checks, Remote, leftovers, remove},
    cluster,
    support::{lab, open, patient},
};

/// Places of clients, and checks at a time in each: a place has one thread, and checks mostly wait.
const SIDES: usize = 4;
const AT_A_TIME: usize = 4;
/// Lasts on a busy machine. Checks that restart the servers take twice this.
const TTL: Duration = Duration::from_secs(8);

/// A directory for one check.
struct Room {
    ensemble: Arc<ZooKeeperCluster>,
    directory: String,
    may_restart: bool,
}

impl Room {
    async fn raw(&self) -> Result<Raw, Failure> {
        let raw = patient().connect(&self.ensemble.node(0).addr().to_string()).await?;
        // This server may lag behind the others.
        raw.sync("/").await?;
        Ok(raw)
    }
}

#[async_trait]
impl Harness for Room {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let mut proxies = Vec::new();
        for node in self.ensemble.nodes() {
            proxies.push(Proxy::start(node.addr()).await?);
        }
        let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.addr().to_string()).collect();
        let url = format!("zookeeper://{}?prefix={}", hosts.join(","), self.directory);
        Ok(Box::new(Remote { locks: open(&url).await, proxies }))
    }

    fn ttl(&self) -> Duration {
        TTL
    }

    /// Kills all servers at once: the store is away, and comes back with its data.
    async fn restart(&self) -> Result<(), Failure> {
        if !self.may_restart {
            return Err(NotHere("other checks run on the same servers".to_owned()).into());
        }
        self.ensemble.nodes().iter().for_each(|node| node.kill());
        for node in self.ensemble.nodes() {
            node.relaunch()?;
        }
        for node in self.ensemble.nodes() {
            node.ready().await?;
        }
        Ok(())
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        remove(&self.raw().await?, &format!("{}/{}", self.directory, name.escaped())).await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Ok(leftovers(&self.raw().await?, &self.directory).await)
    }
}

/// Plays checks on three servers, so many at a time in each of some places.
async fn play(
    checks: &Checks,
    may_restart: bool,
    (sides, at_a_time): (usize, usize),
) -> Result<(), Failure> {
    let network = Network::new()?;
    // A restart of three servers takes long on a busy machine, and sessions must outlast it.
    let servers = lab().tick(Duration::from_secs(1)).setting("maxSessionTimeout", "120000");
    let ensemble = Arc::new(cluster(servers, &network).await?);
    let sides = (0..sides).map(|_| network.side()).collect::<Result<Vec<_>, _>>()?;
    let mut workers = Vec::new();
    for side in sides.iter().cycle().take(sides.len() * at_a_time) {
        let ensemble = ensemble.clone();
        let room = move |directory| Room { ensemble: ensemble.clone(), directory, may_restart };
        workers.push(side.spawn(checks.clone().play(room)));
    }
    for worker in workers {
        worker.await?;
    }
    Ok(())
}

pub async fn every_promise_is_kept_by_three_servers() -> Result<(), Failure> {
    // The suite plays them as other kinds on one server. Three servers differ in how long sessions
    // live, which all kinds share.
    let as_others = lock_lab::in_a_long_run();
    let (shared, restarted) = (Checks::new(false, as_others), Checks::new(true, as_others));
    tokio::try_join!(play(&shared, false, (SIDES, AT_A_TIME)), play(&restarted, true, (1, 1)),)?;
    Checks::all_kept([shared, restarted]);
    Ok(())
}
