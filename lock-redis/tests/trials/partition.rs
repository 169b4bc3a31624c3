//! Both sides of a partition, with the old primary on one of them.

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, Clock, DistributedLock, Error, Instant, Lease, LossReason, Overlap};
use lock_lab::{Network, Redis, RedisSentinels, Side};
use lock_redis::RedisLock;

use crate::{
    base::{self, request, within},
    fenced::Fenced,
};

type Tested = std::result::Result<(), Box<dyn std::error::Error>>;

const TTL: Duration = Duration::from_secs(6);

/// A client with a network of its own.
struct Client {
    side: Side,
    driver: Arc<RedisLock>,
}

impl Client {
    async fn new(network: &Network, redis: &RedisSentinels, options: &str) -> Self {
        let side = network.side().unwrap();
        let url = format!("{}?{options}", redis.url());
        let driver = side.run(async move { base::driver(&url).await }).await;
        Self { side, driver }
    }

    async fn acquire(&self, lock: &'static str) -> lock_core::Result<Box<dyn Lease>> {
        let driver = self.driver.clone();
        let acquire = async move { driver.acquire(request(lock, TTL), Attempt::new()).await };
        self.side.run(acquire).await
    }

    /// Acquires, through the errors of a failover. Returns also when it was granted at the latest.
    async fn acquired(&self, lock: &'static str) -> (Box<dyn Lease>, Instant) {
        within(async {
            loop {
                match self.acquire(lock).await {
                    Ok(lease) => return (lease, Clock::Boot.now()),
                    Err(Error::Unavailable { .. } | Error::PlaceLost { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        })
        .await
    }
}

async fn exists(node: &Redis, key: &[u8]) -> bool {
    node.command(&[b"EXISTS", key]).await.unwrap() == "1"
}

/// Cuts the first primary, as many of its replicas, and a client off from all others.
fn split(
    network: &Network,
    redis: &RedisSentinels,
    replicas: usize,
    alone: &Client,
    other: &Client,
) {
    let place = |node: usize| redis.node(node).place().unwrap();
    let mut old: Vec<_> = (0..=replicas).map(place).collect();
    let mut rest: Vec<_> = redis.peers(0).into_iter().filter(|it| !old.contains(it)).collect();
    old.push(alone.side.place());
    rest.push(other.side.place());
    network.split(&old, &rest).unwrap();
}

async fn deployment(network: &Network) -> RedisSentinels {
    let builder = RedisSentinels::builder().in_memory().down_after(Duration::from_millis(800));
    builder.on(network).start().await.unwrap()
}

pub async fn without_replicas_both_sides_hold_and_the_token_decides() -> Tested {
    both_sides_hold_and_the_token_decides("", 0).await
}

/// The old primary has one replica on its side, and may grant by that alone.
pub async fn with_one_replica_of_two_both_sides_hold_and_the_token_decides() -> Tested {
    both_sides_hold_and_the_token_decides("wait_replicas=1", 1).await
}

async fn both_sides_hold_and_the_token_decides(options: &str, replicas: usize) -> Tested {
    let network = Network::new()?;
    let redis = deployment(&network).await;
    let (alone, other) =
        (Client::new(&network, &redis, options).await, Client::new(&network, &redis, "").await);
    assert!(alone.driver.guarantees().overlaps.contains(&Overlap::Failover));
    split(&network, &redis, replicas, &alone, &other);
    let lost = alone.acquire("orders").await?;
    let mut resource = Fenced::default();
    assert!(resource.write(&*lost));
    let new = redis.primary_after(0).await?;
    let (next, _) = other.acquired("orders").await;
    // As `Overlap::Failover` says: it cannot know yet.
    assert_eq!(lost.validity().loss(), None);
    assert!(exists(redis.node(0), b"orders").await && exists(redis.node(new), b"orders").await);
    assert!(next.token() > lost.token(), "{:?} {:?}", next.token(), lost.token());
    assert!(resource.write(&*next) && !resource.write(&*lost));
    network.heal()?;
    let reason = within(lost.validity().lost()).await;
    assert_eq!(reason, LossReason::Failover);
    within(next.renew()).await?;
    assert_eq!(next.validity().loss(), None);
    Ok(())
}

pub async fn with_all_replicas_one_side_holds_at_a_time() -> Tested {
    let network = Network::new()?;
    let redis = deployment(&network).await;
    let options = "wait_replicas=2";
    let (alone, other) =
        (Client::new(&network, &redis, options).await, Client::new(&network, &redis, "").await);
    let held = alone.acquire("orders").await?;
    split(&network, &redis, 0, &alone, &other);
    let refused = alone.acquire("more").await.unwrap_err();
    assert!(refused.to_string().contains("of 2 replicas"), "{refused}");
    assert!(!exists(redis.node(0), b"more").await);
    redis.primary_after(0).await?;
    // The new primary knows the hold, and lets nobody in before the holder's deadline.
    let until = held.validity().until();
    let (next, granted) = other.acquired("orders").await;
    assert!(granted >= held.validity().until(), "{granted:?} {until:?}");
    assert!(next.token() > held.token());
    assert_eq!(held.validity().until(), until, "no renewal counted meanwhile");
    Ok(())
}
