//! A cluster that loses its leader while clients hold and wait.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, Locks};
use lock_etcd::{
    EtcdConfig, EtcdLock,
    client::{Client, ConnectOptions},
};
use lock_lab::{EtcdCluster, Network, Side};

use crate::{beat::Beat, support::*};

const NAMES: usize = 3;
const WORKERS: usize = 4;

/// Observations of all workers.
#[derive(Default)]
struct Seen {
    held: Mutex<[Option<usize>; NAMES]>,
    cycles: [AtomicUsize; NAMES],
    overlaps: AtomicUsize,
    done: AtomicBool,
}

impl Seen {
    fn enter(&self, name: usize, worker: usize) {
        if self.held.lock().unwrap()[name].replace(worker).is_some() {
            self.overlaps.fetch_add(1, Relaxed);
        }
    }

    fn leave(&self, name: usize, worker: usize) {
        let mut held = self.held.lock().unwrap();
        if held[name] == Some(worker) {
            held[name] = None;
        }
        self.cycles[name].fetch_add(1, Relaxed);
    }

    fn cycles(&self) -> [usize; NAMES] {
        self.cycles.each_ref().map(|cycles| cycles.load(Relaxed))
    }
}

/// Takes each name in turn, and notes that it has left before another worker can have the lock.
async fn work(locks: Locks, worker: usize, seen: Arc<Seen>) {
    for name in (worker..).map(|n| n % NAMES) {
        if seen.done.load(Relaxed) {
            return;
        }
        let Ok(guard) = locks.lock(format!("job{name}")).unwrap().acquire().await else { continue };
        seen.enter(name, worker);
        tokio::select! {
            _ = guard.lost() => {}
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        seen.leave(name, worker);
        drop(guard.release().await);
    }
}

/// Whether the driver makes its own connection, or shares that of a client.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Way {
    Own,
    Shared,
}

async fn connect(way: Way, url: &str) -> Locks {
    if way == Way::Own {
        return locks(&format!("{url}?ttl=10s")).await;
    }
    let options = ConnectOptions::new().with_require_leader(true);
    let pings = (Duration::from_secs(6), Duration::from_secs(2));
    let options = options.with_keep_alive(pings.0, pings.1);
    let endpoints: Vec<_> = url["etcd://".len()..].split(',').collect();
    let client = Client::connect(endpoints, Some(options)).await.unwrap();
    let config = EtcdConfig::from_client(&client).ttl(Duration::from_secs(10));
    Locks::new(EtcdLock::connect(config).await.unwrap())
}

async fn client(way: Way, side: &Side, url: String, first: usize, seen: Arc<Seen>) {
    let locks = side.run(async move { connect(way, &url).await }).await;
    for worker in first..first + WORKERS {
        side.spawn(work(locks.clone(), worker, seen.clone()));
    }
}

async fn until_all_go_on(seen: &Seen) {
    let before = seen.cycles();
    let end = Clock::Boot.now() + Duration::from_secs(60);
    while seen.cycles().iter().zip(before).any(|(now, before)| *now < before + 10) {
        assert!(Clock::Boot.now() < end, "{before:?} and now {:?}", seen.cycles());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn without_its_leader(
    way: Way,
    lose: impl AsyncFn(&Network, &EtcdCluster, usize),
) -> Result<(), Failure> {
    let network = Network::new()?;
    let etcd = EtcdCluster::start(&network).await?;
    let (sides, seen) = ([network.side()?, network.side()?], Arc::new(Seen::default()));
    for (n, side) in sides.iter().enumerate() {
        client(way, side, etcd.url(), n * WORKERS, seen.clone()).await;
    }
    until_all_go_on(&seen).await;
    let old = etcd.leader().await?;
    lose(&network, &etcd, old).await;
    etcd.leader_after(old).await?;
    until_all_go_on(&seen).await;
    seen.done.store(true, Relaxed);
    assert_eq!(seen.overlaps.load(Relaxed), 0);
    Ok(())
}

async fn kill(_: &Network, etcd: &EtcdCluster, leader: usize) {
    etcd.node(leader).kill();
}

async fn isolate(network: &Network, etcd: &EtcdCluster, leader: usize) {
    network.isolate(etcd.place(leader)).unwrap();
}

pub async fn waiters_go_on_without_overlap_when_the_leader_is_killed() -> Result<(), Failure> {
    without_its_leader(Way::Own, kill).await
}

pub async fn waiters_go_on_without_overlap_when_the_leader_is_isolated() -> Result<(), Failure> {
    without_its_leader(Way::Own, isolate).await
}

/// The leader's answers may still reach its clients.
pub async fn waiters_go_on_without_overlap_when_the_leader_is_cut_off_from_its_peers()
-> Result<(), Failure> {
    without_its_leader(Way::Own, async |network: &Network, etcd: &EtcdCluster, leader| {
        network.split(&[etcd.place(leader)], &etcd.peers(leader)).unwrap();
    })
    .await
}

/// The client asks any member, also dead ones.
pub async fn a_shared_client_goes_on_when_the_leader_is_killed() -> Result<(), Failure> {
    without_its_leader(Way::Shared, kill).await
}

pub async fn a_shared_client_goes_on_when_the_leader_is_isolated() -> Result<(), Failure> {
    without_its_leader(Way::Shared, isolate).await
}

/// The member ends the streams of its clients (`hasleader`). The next renewal, which would also show
/// that the member is useless, is 20 s away.
pub async fn a_waiter_leaves_a_member_without_a_leader() -> Result<(), Failure> {
    let network = Network::new()?;
    let etcd = EtcdCluster::start(&network).await?;
    let (near, far) = (network.side()?, network.side()?);
    let url = format!("{}?ttl=60s", etcd.url());
    let member = (etcd.leader().await? + 1) % 3;
    let holder = {
        let url = url.clone();
        far.run(async move { locks(&url).await }).await
    };
    let held = holder.lock("job")?.acquire().await?;
    // The client finds this member alone.
    network.split(&[near.place()], &etcd.peers(member))?;
    let waiter = near.run(async move { locks(&url).await }).await;
    let waiting = near.spawn(async move {
        let guard = waiter.lock("job").unwrap().acquire().await.unwrap();
        guard.release().await.unwrap();
        Clock::Boot.now()
    });
    until_queued(&holder, "job", 2).await;
    network.heal()?;
    network.split(&[etcd.place(member)], &etcd.peers(member))?;
    held.release().await?;
    let (released, beat) = (Clock::Boot.now(), Beat::start());
    let (waited, late) = (waiting.await?.since(released), beat.late());
    let limit = Duration::from_secs(15) + late * 4;
    assert!(waited < limit, "{waited:?}, tasks are late by {late:?}");
    Ok(())
}
