//! The properties of lock-core on one Redis Cluster, with every kind of lock that acts like an
//! exclusive one. Each check has a prefix of its own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use lock_core::{
    LockName, Locks, StoreUrl,
    properties::{
        self, AS_MUTEX, AsMutex, Check, Client, Failure, Guise, Harness, NotHere, Outcome,
    },
};
use lock_lab::RedisCluster;
use lock_redis::{RedisConfig, RedisLock};
use tokio::runtime::{Builder, Runtime};

/// The checks mostly wait.
const AT_ONCE: usize = 24;
const LIMIT: Duration = Duration::from_secs(50);

struct OnCluster {
    redis: Arc<RedisCluster>,
    prefix: String,
}

impl OnCluster {
    async fn keys(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let keys = self.redis.keys().await?.into_iter();
        let own = |key: &Vec<u8>| String::from_utf8_lossy(key).contains(&self.prefix);
        Ok(keys.filter(own).collect())
    }
}

#[async_trait]
impl Harness for OnCluster {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let url = format!("{}?prefix={}", self.redis.url(), self.prefix);
        let config = RedisConfig::from_url(&StoreUrl::parse(&url)?)?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let locks = runtime.spawn(async { RedisLock::connect(config).await.map(Locks::new) });
        let locks = locks.await??;
        Ok(Box::new(Remote { locks, runtime: std::sync::Mutex::new(Some(runtime)) }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn restart(&self) -> Result<(), Failure> {
        Err(Box::new(NotHere("other checks run on the same cluster".to_owned())))
    }

    async fn delete(&self, _name: &LockName) -> Result<(), Failure> {
        for key in self.keys().await? {
            let owner = self.redis.owner(RedisCluster::slot_of(&key)).await?;
            self.redis.node(owner).command(&[b"DEL", &key]).await?;
        }
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let keys = self.keys().await?.into_iter().filter(|key| !key.ends_with(b"\xFFfence"));
        Ok(keys.map(|key| String::from_utf8_lossy(&key).into_owned()).collect())
    }
}

/// A client whose connections and tasks are on a runtime of its own, which a crash ends.
struct Remote {
    locks: Locks,
    runtime: std::sync::Mutex<Option<Runtime>>,
}

impl Remote {
    fn end(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            runtime.shutdown_background();
        }
    }
}

fn no_proxy() -> Result<(), Failure> {
    Err(Box::new(NotHere("no proxy stands before the nodes of a cluster".to_owned())))
}

#[async_trait]
impl Client for Remote {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        no_proxy()
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        no_proxy()
    }

    async fn heal(&self) -> Result<(), Failure> {
        no_proxy()
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.end();
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.end();
    }
}

async fn play(
    redis: Arc<RedisCluster>,
    number: usize,
    check: Check,
    guise: Option<Guise>,
) -> Result<Outcome, Failure> {
    let harness = Box::new(OnCluster { redis, prefix: format!("check-{number}:") });
    let harness: Box<dyn Harness> = match guise {
        Some(guise) => Box::new(AsMutex { harness, guise }),
        None => harness,
    };
    tokio::time::timeout(LIMIT, check.run(&*harness))
        .await
        .unwrap_or_else(|_| Err("too late".into()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_properties_are_kept() {
    let redis =
        Arc::new(RedisCluster::builder().replicas(0).appendonly(false).start().await.unwrap());
    let guises = || [None].into_iter().chain(AS_MUTEX.iter().map(|named| Some(*named)));
    let checks = properties::all().iter().flat_map(move |property| {
        let guises = guises().filter(|guise| guise.is_none() || property.of_exclusive);
        guises.flat_map(move |guise| {
            property.checks.iter().map(move |check| (property, check, guise))
        })
    });
    let played = stream::iter(checks.enumerate()).map(|(number, (property, check, guise))| {
        let name = format!("{}::{}::{}", guise.map_or("lock", |g| g.0), property.name, check.name);
        let task = tokio::spawn(play(redis.clone(), number, *check, guise.map(|g| g.1)));
        async move { (name, task.await.unwrap_or_else(|panic| Err(panic.to_string().into()))) }
    });
    let played: Vec<_> = played.buffer_unordered(AT_ONCE).collect().await;
    let kept = played.iter().filter(|(_, outcome)| matches!(outcome, Ok(Outcome::Kept))).count();
    let failed = played.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
    let failed: Vec<_> = failed.map(|(name, failure)| format!("{name}: {failure}")).collect();
    for (name, outcome) in &played {
        if let Ok(Outcome::Skipped(reason)) = outcome {
            eprintln!("skipped {name}: {reason}");
        }
    }
    eprintln!("{kept} of {} kept", played.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(kept > 100, "{kept}");
}
