//! A cluster with TLS and logins: every promise, and leaders that are killed under load.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lock_core::{
    Clock, LockName,
    properties::{self, AS_MUTEX, AsMutex, Check, Client, Guise, Harness, NotHere, Outcome},
};
use lock_lab::Proxy;

use crate::{beat::Beat, load::Load, remote::Remote, secured::Secured, support::*};

/// Places of clients, and checks at a time in each: a place has one thread.
const SIDES: usize = 4;
const AT_A_TIME: usize = 8;
/// Clusters for the checks that restart members.
const RESTARTED: usize = 3;
/// The checks that restart the members: they have a cluster for themselves.
const RESTARTING: [&str; 3] =
    ["fencing::across_restart", "reconnect::while_holding", "reconnect::while_waiting"];

/// A part of the keys for one check.
struct Room {
    cluster: Arc<Secured>,
    prefix: String,
    may_restart: bool,
}

#[async_trait]
impl Harness for Room {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let mut proxies = Vec::new();
        for node in self.cluster.etcd.nodes() {
            proxies.push(Proxy::start(node.addr()).await?);
        }
        let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.addr().to_string()).collect();
        // A busy machine takes long to greet so many clients.
        let url = self.cluster.url(&hosts, &self.prefix) + "&connect_timeout=30s";
        Ok(Box::new(Remote { locks: locks(&url).await, proxies }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(4)
    }

    /// Kills all members at once: the store is away, and comes back with its data.
    async fn restart(&self) -> Result<(), Failure> {
        if !self.may_restart {
            return Err(NotHere("other checks run on the same cluster".to_owned()).into());
        }
        let nodes = self.cluster.etcd.nodes();
        nodes.iter().for_each(|node| node.kill());
        for node in nodes {
            node.relaunch()?;
        }
        for node in nodes {
            node.ready().await?;
        }
        Ok(())
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
        // The key of a session ends with the session. A mark does not.
        let kept = |key: &String| key.starts_with('#') && !key.starts_with("#done");
        Ok(ours.filter(|key| !kept(key)).collect())
    }
}

/// A check, as one kind of lock.
struct Case {
    name: String,
    check: Check,
    guise: Option<Guise>,
}

/// The checks that restart members, or the others, as every kind of lock that acts like an
/// exclusive one.
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
                    cases.push_back(Case { name, check: *check, guise });
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
    cluster: Arc<Secured>,
    may_restart: bool,
    cases: Arc<Mutex<VecDeque<Case>>>,
    results: Arc<Mutex<Results>>,
) {
    loop {
        let next = cases.lock().unwrap().pop_front();
        let Some(Case { name, check, guise }) = next else { return };
        let prefix = format!("locks/{name}/");
        let room = Box::new(Room { cluster: cluster.clone(), prefix, may_restart });
        let harness: Box<dyn Harness> = match guise {
            Some(guise) => Box::new(AsMutex { harness: room, guise }),
            None => room,
        };
        let began = Clock::Boot.now();
        let outcome = check.run(&*harness).await;
        let took = Clock::Boot.now().since(began);
        let mut results = results.lock().unwrap();
        match outcome {
            Ok(Outcome::Skipped(why)) => results.skipped.push(format!("{name}: {why}")),
            Ok(_) => results.kept += 1,
            Err(why) => results.failed.push(format!("{name} after {took:?}: {why}")),
        }
    }
}

/// Plays cases on a cluster, so many at a time in each of some places.
async fn play_all(
    may_restart: bool,
    cases: Arc<Mutex<VecDeque<Case>>>,
    (sides, at_a_time): (usize, usize),
    results: &Arc<Mutex<Results>>,
) -> Result<(), Failure> {
    let cluster = Arc::new(Secured::start().await?);
    let sides = (0..sides).map(|_| cluster.network.side()).collect::<Result<Vec<_>, _>>()?;
    let mut workers = Vec::new();
    for side in sides.iter().cycle().take(sides.len() * at_a_time) {
        let played = play(cluster.clone(), may_restart, cases.clone(), results.clone());
        workers.push(side.spawn(played));
    }
    for worker in workers {
        worker.await?;
    }
    Ok(())
}

pub async fn every_promise_is_kept_over_tls_with_logins() -> Result<(), Failure> {
    let results = Arc::new(Mutex::new(Results::default()));
    let [shared, restarting] = [false, true].map(|restart| Arc::new(Mutex::new(cases(restart))));
    let shared = play_all(false, shared, (SIDES, AT_A_TIME), &results);
    let alone = (0..RESTARTED).map(|_| play_all(true, restarting.clone(), (1, 1), &results));
    tokio::try_join!(shared, try_join_all(alone))?;
    let results = results.lock().unwrap();
    println!("{} kept", results.kept);
    assert!(results.failed.is_empty(), "{:#?}", results.failed);
    // etcd has all that the checks need.
    assert!(results.skipped.is_empty(), "{:#?}", results.skipped);
    Ok(())
}

/// After this a client leaves a member that is silent.
const SILENCE: Duration = Duration::from_secs(2);
/// What a busy machine takes besides.
const BUSY: Duration = Duration::from_secs(2);

/// The least, the median, and the greatest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|n| times[n].as_millis());
    format!("{least}, {median}, {most} ms (least, median, most)")
}

pub async fn no_lock_is_lost_and_waiters_go_on_when_leaders_are_killed() -> Result<(), Failure> {
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
    let (mut elections, mut pauses) = (Vec::new(), Vec::new());
    for _ in 0..lock_lab::size(3, 10) {
        let old = cluster.etcd.leader().await?;
        let (killed, beat) = (Clock::Boot.now(), Beat::start());
        cluster.etcd.node(old).kill();
        cluster.etcd.leader_after(old).await?;
        let elected = Clock::Boot.now().since(killed);
        load.until_all_go_on().await;
        let (pause, late) = (load.longest_pause_since(killed), beat.late());
        let why = format!("{pause:?} with a leader after {elected:?}, tasks late by {late:?}");
        assert!(pause < elected + SILENCE + BUSY + late, "{why}");
        elections.push(elected);
        pauses.push(pause);
        cluster.etcd.node(old).relaunch()?;
        cluster.etcd.node(old).ready().await?;
    }
    println!("a leader after {}; the next grant after {}", spread(elections), spread(pauses));
    load.finish().await;
    load.check();
    Ok(())
}
