//! A lock as often written by hand, to show that a run finds its mistakes: `SET NX PX` without
//! renewal, a holder that does not check the clock, and a release that does not check the owner.
#![cfg(feature = "redis")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::Locks;
use lock_core::{
    Attempt, Clock, DistributedLock, Effect, Entry, Error, Fencing, FencingToken, Guarantees,
    Instant, Lease, LockName, Request, Result, Validity, Wait,
};
use lock_lab::Redis;
use uuid::Uuid;

use crate::chaos::{
    run::CLIENTS,
    stage::{Connecting, Failure, Home, Stage},
};

const STORE: &str = "naive";
const PAUSE: Duration = Duration::from_millis(20);

/// A Redis server without faults: the lock breaks by itself.
pub struct Naive(Arc<Redis>);

impl Naive {
    pub async fn new() -> std::result::Result<Self, Failure> {
        Ok(Self(Arc::new(Redis::start().await?)))
    }
}

#[async_trait]
impl Stage for Naive {
    fn kinds(&self) -> &'static [&'static str] {
        &["none"]
    }

    fn home(&self, _client: usize) -> std::result::Result<Home, Failure> {
        Home::thread()
    }

    fn connect(&self, client: usize) -> Connecting {
        assert!(client < CLIENTS);
        let mut guarantees = Guarantees::least(STORE);
        guarantees.fencing = Fencing::Strict("INCR");
        let driver = SetNx { redis: self.0.clone(), guarantees };
        Box::pin(async { Ok(Locks::new(driver)) })
    }

    async fn play(&self, step: &crate::chaos::plan::Step) -> std::result::Result<String, Failure> {
        tokio::time::sleep(step.lasts).await;
        Ok("nothing".to_owned())
    }

    async fn leftovers(&self) -> std::result::Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

#[derive(Debug)]
struct SetNx {
    redis: Arc<Redis>,
    guarantees: Guarantees,
}

async fn command(redis: &Redis, op: &'static str, args: &[&[u8]]) -> Result<String> {
    redis.command(args).await.map_err(|error| Error::Unavailable {
        store: STORE,
        op,
        effect: Effect::Unknown,
        source: error.into(),
    })
}

#[async_trait]
impl DistributedLock for SetNx {
    fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    fn clock(&self) -> Clock {
        Clock::Boot
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let Request { name, wait, ttl, .. } = request;
        let key = name.as_str().as_bytes();
        let millis = ttl.as_millis().to_string();
        loop {
            let set: [&[u8]; 6] = [b"SET", key, b"held", b"NX", b"PX", millis.as_bytes()];
            if command(&self.redis, "acquire", &set).await? == "OK" {
                let token = command(&self.redis, "acquire", &[b"INCR", b"tokens"]).await?;
                let token = FencingToken::new(token.parse().expect("INCR returns a number"));
                // First mistake: the key expires.
                let validity = Validity::new(&name, Instant::NEVER);
                return Ok(Box::new(Key { redis: self.redis.clone(), name, token, validity }));
            }
            if wait == Wait::Try || attempt.is_cancelled() {
                return Err(Error::Contended { name });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn inspect(&self, _name: &LockName) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    async fn names(&self, _prefix: &str) -> Result<Vec<LockName>> {
        Ok(Vec::new())
    }

    async fn revoke(&self, _name: &LockName, _attempt: Uuid) -> Result<bool> {
        Ok(false)
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Key {
    redis: Arc<Redis>,
    name: LockName,
    token: FencingToken,
    validity: Validity,
}

#[async_trait]
impl Lease for Key {
    fn token(&self) -> FencingToken {
        self.token
    }

    fn validity(&self) -> &Validity {
        &self.validity
    }

    async fn renew(&self) -> Result<()> {
        Ok(())
    }

    /// Second mistake: the key may belong to the next holder.
    async fn release(&self) -> Result<()> {
        let delete: [&[u8]; 2] = [b"DEL", self.name.as_str().as_bytes()];
        command(&self.redis, "release", &delete).await.map(drop)
    }
}
