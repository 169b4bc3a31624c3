//! The properties of lock-core on three servers, with every kind of lock that acts like an
//! exclusive one. Each check has a directory of its own, and each client a proxy to each server.

mod support;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{
    Clock, LockName, Locks,
    properties::{
        self, AS_MUTEX, AsMutex, Check, Client, Failure, Guise, Harness, NotHere, Outcome,
    },
};
use lock_lab::{Network, Proxy, ZooKeeper, ZooKeeperCluster, network_tests};
use lock_zk::client::{Client as Raw, Error as ZkError};
use support::*;

/// Places of clients, and checks at a time in each: a place has one thread, and checks mostly wait.
const SIDES: usize = 4;
const AT_A_TIME: usize = 10;
/// The checks that restart the servers. They have three for themselves, one at a time.
const RESTARTING: [&str; 3] =
    ["fencing::across_restart", "reconnect::while_holding", "reconnect::while_waiting"];
const TTL: Duration = Duration::from_secs(3);
/// The checks that restart take twice this, and more if a restart takes longer.
const TTL_OF_RESTARTING: Duration = Duration::from_secs(2);

/// The checks that cannot be made. Each is of one feature that this store has not.
const SKIPPED: [&str; 5] = [
    "lock::detach::a_lost_answer_costs_nothing",
    "lock::detach::free_if_nobody_takes_it_up",
    "lock::detach::outlives_who_left_it",
    "lock::detach::taken_up_by_another",
    "lock::detach::taken_up_once",
];

/// A directory for one check.
struct Room {
    ensemble: Arc<ZooKeeperCluster>,
    directory: String,
    may_restart: bool,
}

/// A client whose way to each server leads through a proxy of its own.
struct Remote {
    // First: the locks are dropped before their network.
    locks: Locks,
    proxies: Vec<Proxy>,
}

impl Room {
    async fn raw(&self) -> Result<Raw, Failure> {
        let raw = Raw::connect(&self.ensemble.node(0).addr().to_string()).await?;
        // This server may lag behind the others.
        raw.sync("/").await?;
        Ok(raw)
    }

    /// Everything below a directory, the lowest first.
    async fn nodes(&self, raw: &Raw, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        for child in raw.list_children(path).await.unwrap_or_default() {
            let child = format!("{path}/{child}");
            found.extend(Box::pin(self.nodes(raw, &child)).await);
            found.push(child);
        }
        found
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
        Ok(Box::new(Remote { locks: opened(&url).await, proxies }))
    }

    fn ttl(&self) -> Duration {
        if self.may_restart { TTL_OF_RESTARTING } else { TTL }
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
        let (raw, path) = (self.raw().await?, format!("{}/{}", self.directory, name.escaped()));
        let mut nodes = self.nodes(&raw, &path).await;
        nodes.push(path);
        for node in nodes {
            match raw.delete(&node, None).await {
                // The server removes empty containers, too.
                Ok(()) | Err(ZkError::NoNode) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let mut nodes = self.nodes(&self.raw().await?, &self.directory).await;
        // The directory of a name is removed by the servers.
        nodes.retain(|node| node.matches('/').count() > 2);
        Ok(nodes)
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

/// A check, as one kind of lock.
struct Case {
    name: String,
    check: Check,
    guise: Option<Guise>,
    may_restart: bool,
}

/// The checks that restart the servers, or the others, with each guise that they can have.
fn cases(may_restart: bool) -> VecDeque<Case> {
    let mut cases = VecDeque::new();
    for property in properties::all() {
        let guises = AS_MUTEX.iter().filter(|_| property.of_exclusive);
        let guises = guises.map(|(kind, guise)| (*kind, Some(*guise)));
        for (kind, guise) in [("lock", None)].into_iter().chain(guises) {
            for check in property.checks {
                let name = format!("{}::{}", property.name, check.name);
                if RESTARTING.contains(&name.as_str()) == may_restart {
                    let name = format!("{kind}::{name}");
                    cases.push_back(Case { name, check: *check, guise, may_restart });
                }
            }
        }
    }
    cases
}

/// The results of the checks: how many were kept, which could not be made, and which failed.
#[derive(Default)]
struct Results {
    kept: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
}

/// Plays cases until there are no more.
async fn play(
    ensemble: Arc<ZooKeeperCluster>,
    cases: Arc<Mutex<VecDeque<Case>>>,
    results: Arc<Mutex<Results>>,
) {
    loop {
        let next = cases.lock().unwrap().pop_front();
        let Some(Case { name, check, guise, may_restart }) = next else { return };
        let directory = format!("/{}", name.replace("::", "-"));
        let room = Box::new(Room { ensemble: ensemble.clone(), directory, may_restart });
        let harness: Box<dyn Harness> = match guise {
            Some(guise) => Box::new(AsMutex { harness: room, guise }),
            None => room,
        };
        let began = Clock::Boot.now();
        let outcome = check.run(&*harness).await;
        let took = Clock::Boot.now().since(began);
        let mut results = results.lock().unwrap();
        match outcome {
            Ok(Outcome::Skipped(why)) => {
                println!("skipped {name}: {why}");
                results.skipped.push(name);
            }
            Ok(_) => results.kept += 1,
            Err(why) => results.failed.push(format!("{name} after {took:?}: {why}")),
        }
    }
}

/// Plays the checks on three servers, so many at a time in each of some places.
async fn play_all(
    may_restart: bool,
    (sides, at_a_time): (usize, usize),
    results: &Arc<Mutex<Results>>,
) -> Result<(), Failure> {
    let network = Network::new()?;
    let builder = ZooKeeper::builder().in_memory().arg("-XX:TieredStopAtLevel=1");
    let ensemble = Arc::new(builder.start_cluster(&network).await?);
    let cases = Arc::new(Mutex::new(cases(may_restart)));
    let sides = (0..sides).map(|_| network.side()).collect::<Result<Vec<_>, _>>()?;
    let mut workers = Vec::new();
    for side in sides.iter().cycle().take(sides.len() * at_a_time) {
        workers.push(side.spawn(play(ensemble.clone(), cases.clone(), results.clone())));
    }
    for worker in workers {
        worker.await?;
    }
    Ok(())
}

async fn every_promise_is_kept_by_three_servers() -> Result<(), Failure> {
    let results = Arc::new(Mutex::new(Results::default()));
    let shared = play_all(false, (SIDES, AT_A_TIME), &results);
    let restarted = play_all(true, (1, 1), &results);
    tokio::try_join!(shared, restarted)?;
    let mut results = results.lock().unwrap();
    println!("{} kept", results.kept);
    assert!(results.failed.is_empty(), "{:#?}", results.failed);
    results.skipped.sort();
    assert_eq!(results.skipped, SKIPPED);
    Ok(())
}

network_tests!(every_promise_is_kept_by_three_servers);
