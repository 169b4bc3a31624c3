//! A cluster with TLS and logins: every promise, and leaders that are killed under load.

mod load;
mod secured;
mod support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use load::Load;
use lock_core::{
    Clock, LockName, Locks,
    properties::{self, Client, Harness, NotHere, Outcome},
};
use lock_lab::Proxy;
use secured::Secured;
use support::*;

/// Places of clients, and checks at a time in each: a place has one thread.
const SIDES: usize = 4;
const AT_A_TIME: usize = 8;

/// A part of the keys for one check.
struct Room {
    cluster: Arc<Secured>,
    prefix: String,
}

/// A client whose way to each node leads through a proxy of its own.
struct Remote {
    // First: the locks are dropped before their network.
    locks: Locks,
    proxies: Vec<Proxy>,
}

#[async_trait]
impl Harness for Room {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let mut proxies = Vec::new();
        for node in self.cluster.etcd.nodes() {
            proxies.push(Proxy::start(node.addr()).await?);
        }
        let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.addr().to_string()).collect();
        let url = self.cluster.url(&hosts, &self.prefix);
        Ok(Box::new(Remote { locks: locks(&url).await, proxies }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(4)
    }

    async fn restart(&self) -> Result<(), Failure> {
        // Other checks use the cluster meanwhile.
        Err(NotHere("restart a cluster that is shared".to_owned()).into())
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        let keys = format!("{}{}/", self.prefix, name.escaped());
        self.cluster.etcd.node(0).delete_prefix(keys.as_bytes()).await?;
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let keys = self.cluster.etcd.node(0).keys().await?.into_iter();
        let keys = keys.map(|key| String::from_utf8_lossy(&key).into_owned());
        let ours = keys.filter_map(|key| key.strip_prefix(&self.prefix).map(str::to_owned));
        // The epoch key of a session is deleted with the session.
        Ok(ours.filter(|key| !key.starts_with('#')).collect())
    }
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.proxies.iter().for_each(Proxy::cut);
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.proxies.iter().for_each(Proxy::half_open);
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.proxies.iter().for_each(Proxy::heal);
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.proxies.iter().for_each(Proxy::refuse);
        Ok(())
    }
}

/// The results of the checks: how many were kept, which could not be made, and which failed.
#[derive(Default)]
struct Results {
    kept: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
}

async fn every_promise_is_kept_over_tls_with_logins() -> Result<(), Failure> {
    let cluster = Arc::new(Secured::start().await?);
    let checks = properties::all().iter().flat_map(|property| {
        property.checks.iter().map(|check| (format!("{}::{}", property.name, check.name), *check))
    });
    let checks = Arc::new(Mutex::new(checks.collect::<Vec<_>>()));
    let results = Arc::new(Mutex::new(Results::default()));
    let sides = (0..SIDES).map(|_| cluster.network.side()).collect::<Result<Vec<_>, _>>()?;
    let mut workers = Vec::new();
    for worker in 0..SIDES * AT_A_TIME {
        let (cluster, checks, results) = (cluster.clone(), checks.clone(), results.clone());
        workers.push(sides[worker % SIDES].spawn(async move {
            loop {
                let Some((name, check)) = checks.lock().unwrap().pop() else { return };
                let room = Room { cluster: cluster.clone(), prefix: format!("locks/{}/", name) };
                let began = Clock::Boot.now();
                let outcome = check.run(&room).await;
                let took = Clock::Boot.now().since(began);
                let mut results = results.lock().unwrap();
                match outcome {
                    Ok(Outcome::Skipped(why)) => results.skipped.push(format!("{name}: {why}")),
                    Ok(_) => results.kept += 1,
                    Err(why) => results.failed.push(format!("{name} after {took:?}: {why}")),
                }
            }
        }));
    }
    for worker in workers {
        worker.await?;
    }
    let results = results.lock().unwrap();
    println!("{} kept, skipped: {:#?}", results.kept, results.skipped);
    assert!(results.failed.is_empty(), "{:#?}", results.failed);
    assert!(results.kept > 5 * results.skipped.len(), "most was skipped");
    Ok(())
}

/// How often the leader is killed, and the TTL: longer than two elections.
const KILLS: usize = 10;

async fn no_lock_is_lost_and_waiters_go_on_when_leaders_are_killed() -> Result<(), Failure> {
    let cluster = Secured::start().await?;
    let sides = [cluster.network.side()?, cluster.network.side()?];
    let load = Arc::new(Load::default());
    for side in &sides {
        let hosts: Vec<_> =
            cluster.etcd.nodes().iter().map(|node| node.addr().to_string()).collect();
        let url = cluster.url(&hosts, "locks/") + "&ttl=10s";
        let locks = side.run(async move { locks(&url).await }).await;
        load.start(side, &locks);
    }
    load.until_all_go_on().await;
    for kill in 1..=KILLS {
        let old = cluster.etcd.leader().await?;
        let killed = Clock::Boot.now();
        cluster.etcd.node(old).kill();
        cluster.etcd.leader_after(old).await?;
        let elected = Clock::Boot.now().since(killed);
        load.until_all_go_on().await;
        println!(
            "kill {kill}: a leader after {elected:?}, the next grant after {:?} without one",
            load.longest_pause_since(killed),
        );
        cluster.etcd.node(old).relaunch()?;
        cluster.etcd.node(old).ready().await?;
    }
    load.finish().await;
    load.check();
    Ok(())
}

lock_lab::network_tests!(
    every_promise_is_kept_over_tls_with_logins,
    no_lock_is_lost_and_waiters_go_on_when_leaders_are_killed,
);
