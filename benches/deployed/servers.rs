//! Starts the servers, and connects both sides.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use distlock::Locks;
use lock_lab::{IndependentRedis, Redis, RedisCluster, RedisSentinels};

use super::{Deployed, cores::separate};
use bench::{
    Pair,
    bare::redis::{majority, pair},
};

/// The votes of a server of Redlock count when it is older than this.
const MAX_TTL: Duration = Duration::from_secs(2);

const SINGLE: &str = "single";
/// The servers of the row through Sentinel, without the sentinels.
const REPLICATED: &str = "a primary with two replicas, redis://";
/// As many servers and connections as in the Cluster, without a Cluster.
const THREE: &str = "three servers, a redis:// for each";

/// All deployments, in memory.
pub struct Servers {
    single: Redis,
    sentinels: RedisSentinels,
    cluster: RedisCluster,
    three: IndependentRedis,
    five: IndependentRedis,
}

impl Servers {
    pub async fn start() -> Self {
        let five = Redis::builder().in_memory().start_independent(5).await.expect("five servers");
        let three = Redis::builder().in_memory().start_independent(RedisCluster::PRIMARIES).await;
        let single = Redis::builder().in_memory().start().await.expect("redis");
        let sentinels = RedisSentinels::builder().in_memory().start().await.expect("sentinels");
        let cluster = RedisCluster::builder().replicas(0).appendonly(false);
        let cluster = cluster.start().await.expect("a cluster");
        tokio::time::sleep(MAX_TTL * 2).await;
        Self { single, sentinels, cluster, three: three.expect("three servers"), five }
    }

    /// Keeps the clients away from the servers' cores.
    pub fn separate(&self) {
        let redis = self.sentinels.nodes().iter().chain(self.cluster.nodes());
        separate(redis.chain(self.three.iter()).chain(self.five.iter()).chain([&self.single]));
    }

    pub async fn deployed(&self) -> Vec<Deployed<'_>> {
        let spread = self.spread().await;
        let bare = async |node: &Redis| {
            let load = pair(&node.addr().to_string()).await;
            in_turn(spread.iter().map(|(number, _)| load.of(*number)).collect())
        };
        let connect = async |url: &str| distlock::connect(url).await.expect("a connection");
        let ours = async |url: &str| {
            let locks = connect(url).await;
            in_turn(spread.iter().map(|(number, _)| ours(&locks, *number)).collect())
        };
        let (primary, voters) = (self.sentinels.node(0), self.five.addrs());
        let voters: Vec<String> = voters.iter().map(ToString::to_string).collect();
        let majority = majority(&voters).await;
        let majority = in_turn(spread.iter().map(|(number, _)| majority.of(*number)).collect());
        let redlock = format!("redlock://{}?ttl=2s&max_ttl=2s", voters.join(","));
        let (mut owners, mut apart) = (Vec::new(), (Vec::new(), Vec::new()));
        for ((number, owner), server) in spread.iter().zip(self.three.iter()) {
            owners.push(pair(&owner.addr().to_string()).await.of(*number));
            apart.0.push(self::ours(&connect(&server.url()).await, *number));
            apart.1.push(pair(&server.addr().to_string()).await.of(*number));
        }
        let (cluster, five) = (self.cluster.nodes().iter(), self.five.iter());
        let [one, two, three] = [&self.single, primary, primary].map(|node| vec![node]);
        let single = (ours(&self.single.url()).await, bare(&self.single).await);
        let replicated = (ours(&primary.url()).await, bare(primary).await);
        let sentinel = (ours(&self.sentinels.url()).await, bare(primary).await);
        let apart = (in_turn(apart.0), in_turn(apart.1));
        let clustered = (ours(&self.cluster.url()).await, in_turn(owners));
        let voting = (ours(&redlock).await, majority);
        vec![
            Deployed::new(SINGLE, one, single, SINGLE),
            Deployed::new(REPLICATED, two, replicated, SINGLE),
            Deployed::new("sentinel", three, sentinel, REPLICATED),
            Deployed::new(THREE, self.three.iter().collect(), apart, SINGLE),
            Deployed::new("cluster", cluster.collect(), clustered, THREE),
            Deployed::new("redlock", five.collect(), voting, SINGLE),
        ]
    }

    /// Numbers of names, and the primary of the cluster that has both sides' name with this number:
    /// one for each. The other deployments have the same names.
    async fn spread(&self) -> Vec<(usize, &Redis)> {
        let (mut spread, mut used) = (Vec::new(), BTreeSet::new());
        for number in 0.. {
            let [ours, bare] = ["bench", "floor"]
                .map(|side| RedisCluster::slot_of(format!("{side}-{number}").as_bytes()));
            let owner = self.cluster.owner(ours).await.expect("an owner");
            let same = owner == self.cluster.owner(bare).await.expect("an owner");
            if same && used.insert(owner) {
                spread.push((number, self.cluster.node(owner)));
            }
            if spread.len() == RedisCluster::PRIMARIES {
                break;
            }
        }
        spread
    }
}

/// One pair after the other.
fn in_turn(pairs: Vec<Pair>) -> Pair {
    let next = AtomicUsize::new(0);
    Box::new(move || pairs[next.fetch_add(1, Ordering::Relaxed) % pairs.len()]())
}

fn ours(locks: &Locks, number: usize) -> Pair {
    let lock = locks.lock(format!("bench-{number}")).expect("a name");
    let locks = locks.clone();
    Box::new(move || {
        let (lock, _open) = (lock.clone(), locks.clone());
        Box::pin(async move {
            lock.acquire().await.expect("the lock").release().await.expect("a release");
        })
    })
}
