//! Redlock, as printed in its article.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::{
    Contestant, Failure, Granted, Hold, KeySpace, Keys, Nature, Player, keys::keys_at, time::Time,
};

/// Limit for one server, much less than a TTL.
const SERVER: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(50);
/// Allowed clock drift: a hundredth of the TTL, and 2 ms.
const DRIFT: (u32, Duration) = (100, Duration::from_millis(2));

/// A lock that is the same key on a majority of independent servers. It is valid for its TTL, minus
/// the time of the acquire and the clock drift. It is not renewed.
#[derive(Clone)]
pub(crate) struct Redlock(Vec<Arc<dyn KeySpace>>);

impl Redlock {
    pub(crate) fn new(urls: &[String]) -> Result<Self, Failure> {
        Ok(Self(urls.iter().map(|url| keys_at(url)).collect::<Result<_, _>>()?))
    }

    /// Sets the key on all servers, once. `None` without a majority in time.
    async fn attempt(&self, name: &str, ttl: Duration) -> Result<Option<Held>, Failure> {
        let (time, value) = (Time::start(), Uuid::new_v4().to_string());
        let (servers, majority) = (self.connections().await, self.0.len() / 2 + 1);
        if servers.len() < majority {
            let (there, all) = (servers.len(), self.0.len());
            return Err(format!("{there} of {all} servers answer, which is no majority").into());
        }
        let asked = servers.iter().map(|server| {
            let set = server.set_nx(name, &value, Some(ttl));
            async { matches!(timeout(SERVER, set).await, Ok(Ok(true))) }
        });
        let granted = join_all(asked).await.into_iter().filter(|yes| *yes).count();
        let valid = ttl.saturating_sub(ttl / DRIFT.0 + DRIFT.1);
        let held = Held { servers, key: name.to_owned(), value, time, valid };
        if granted >= majority && held.believes() {
            return Ok(Some(held));
        }
        held.give_back().await;
        Ok(None)
    }

    async fn connections(&self) -> Vec<Arc<dyn Keys>> {
        let servers = self.0.iter().map(|server| timeout(SERVER, server.connect()));
        join_all(servers).await.into_iter().filter_map(|server| server.ok()?.ok()).collect()
    }
}

#[async_trait]
impl Contestant for Redlock {
    fn label(&self) -> String {
        format!("Redlock on {} servers", self.0.len())
    }

    fn nature(&self) -> Nature {
        Nature::AsPrinted
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Player for Redlock {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let waited = Time::start();
        loop {
            if let Some(held) = self.attempt(name, ttl).await? {
                return Ok(Some(Box::new(held)));
            }
            if waited.since() >= wait {
                return Ok(None);
            }
            sleep(PAUSE).await;
        }
    }
}

struct Held {
    servers: Vec<Arc<dyn Keys>>,
    key: String,
    value: String,
    time: Time,
    valid: Duration,
}

impl Held {
    /// Deletes the key on all servers, also where it was not granted. Returns the number of servers
    /// that had it.
    async fn give_back(&self) -> usize {
        let given = self.servers.iter().map(|server| async {
            let del = server.del(&self.key, Some(&self.value));
            matches!(timeout(SERVER, del).await, Ok(Ok(true)))
        });
        join_all(given).await.into_iter().filter(|yes| *yes).count()
    }
}

#[async_trait]
impl Hold for Held {
    fn believes(&self) -> bool {
        self.time.since() < self.valid
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        Ok(self.give_back().await > 0)
    }
}
