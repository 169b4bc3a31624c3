//! Clients that can be cut off from their store, if there is something to cut.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use distlock::Locks;
use lock_lab::Proxy;
use tokio::time::timeout;

use crate::{
    Actor, Contestant, Distlock, Failure, Ground, Missing, Pause, Player, Stage, endless::Endless,
};

/// Attempts to find a better moment for the pause.
const ATTEMPTS: usize = 50;
/// Longest time for the store's reply. Locks are not renewed meanwhile, so it is far below a TTL.
const ANSWER_LIMIT: Duration = Duration::from_millis(250);

/// A fault that cuts a client off.
#[async_trait]
pub(crate) trait Cut: Send + Sync {
    /// Its description: "the network is cut by a proxy".
    fn what(&self) -> &'static str;

    /// Stops all messages.
    async fn cut(&self) -> Result<(), Failure>;

    /// Ends the fault.
    async fn heal(&self);
}

/// A client with the fault that cuts it off.
pub(crate) type Cuttable = (Arc<dyn Player>, Box<dyn Cut>);

/// distlock: behind a proxy. In memory: behind the store's own scripted partition. On a file: in a
/// process that stands still.
pub(crate) async fn distlock(stage: &Stage) -> Result<Cuttable, Failure> {
    let ground = stage.shared().await?;
    match stage.store {
        #[cfg(feature = "memory")]
        crate::Store::Memory => memory(&ground.url()).await,
        store if store.is_embedded() => {
            paused(&Distlock::new(ground.url()), Some(stage.connect().await?)).await
        }
        _ => {
            let (proxy, url) = proxy(&ground).await?;
            Ok((Distlock::new(url).client().await?, Box::new(proxy)))
        }
    }
}

/// The lock without an expiry, same as [`distlock`].
pub(crate) async fn endless(stage: &Stage, lock: &Endless) -> Result<Cuttable, Failure> {
    if stage.store.is_embedded() {
        return paused(lock, None).await;
    }
    let (proxy, url) = proxy(&*stage.shared().await?).await?;
    Ok((Endless::at(stage.store, &url).await?.client().await?, Box::new(proxy)))
}

async fn proxy(ground: &Ground) -> Result<(Proxy, String), Failure> {
    let Some(server) = ground.server() else {
        let what = "it needs a proxy before a private server, and this one is in use";
        return Err(Missing::new(what, "leave --store away for this claim").into());
    };
    let proxy = Proxy::start(server.addr()).await?;
    let url = server.url_via(&proxy);
    Ok((proxy, url))
}

/// distlock also gets an operator, which checks whether the store answers other clients.
async fn paused(lock: &dyn Contestant, operator: Option<Locks>) -> Result<Cuttable, Failure> {
    let home = Actor::start("A")?;
    let client = lock.client_in(&home).await?;
    Ok((client, Box::new(Resident { home, operator, pause: Mutex::default() })))
}

/// Pauses a client while it has no request in progress. All clients of a process share one request
/// to a SQLite file, in turns. A client that stands still during its request would block the
/// clients that play other processes.
pub(crate) async fn stand_still(home: &Actor, operator: &Locks) -> Result<Pause, Failure> {
    for _ in 0..ATTEMPTS {
        let pause = home.pause().await?;
        let mut look = pin!(operator.inspect("compare/does-the-store-answer"));
        if let Ok(answer) = timeout(ANSWER_LIMIT, &mut look).await {
            answer?;
            return Ok(pause);
        }
        drop(pause);
        // Meanwhile the client finishes its request and others renew. Another pause at once would
        // stop it during the same request.
        look.await?;
    }
    Err("the store answers nobody while the client stands still".into())
}

#[async_trait]
impl Cut for Proxy {
    fn what(&self) -> &'static str {
        "the network between A and the store is cut: silence in both directions"
    }

    async fn cut(&self) -> Result<(), Failure> {
        Self::cut(self);
        Ok(())
    }

    async fn heal(&self) {
        Self::heal(self);
    }
}

/// A process that can stand still, because no network lies between it and its store.
struct Resident {
    home: Actor,
    operator: Option<Locks>,
    pause: Mutex<Option<Pause>>,
}

#[async_trait]
impl Cut for Resident {
    fn what(&self) -> &'static str {
        "there is no network to cut: A's process stands still instead, the nearest to it"
    }

    async fn cut(&self) -> Result<(), Failure> {
        let pause = match &self.operator {
            Some(operator) => stand_still(&self.home, operator).await?,
            None => self.home.pause().await?,
        };
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Some(pause);
        Ok(())
    }

    async fn heal(&self) {
        drop(self.pause.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[cfg(feature = "memory")]
async fn memory(url: &str) -> Result<Cuttable, Failure> {
    use distlock::memory::{MemoryConfig, MemoryLock};

    let config = MemoryConfig::from_url(&lock_core::StoreUrl::parse(url)?)?;
    let client = MemoryLock::connect(config).await?;
    let faults = client.faults();
    Ok((Distlock::client_of(Locks::new(client)), Box::new(Partition(faults))))
}

/// The partition that the store in memory can play itself.
#[cfg(feature = "memory")]
struct Partition(distlock::memory::Faults);

#[cfg(feature = "memory")]
#[async_trait]
impl Cut for Partition {
    fn what(&self) -> &'static str {
        "the store in memory plays a network cut between A and itself"
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.0.partition();
        Ok(())
    }

    async fn heal(&self) {
        self.0.heal();
    }
}
