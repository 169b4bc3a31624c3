//! A queue of keys, as described in the articles: each waiter has a key with its own number, and
//! watches the key just before it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{Contestant, Failure, Hold, KeySpace, Keys, Nature, Player, time::Time};

/// A queue of keys.
#[derive(Clone)]
pub struct PrintedQueue {
    keys: Arc<dyn KeySpace>,
    one_event: bool,
}

impl PrintedQueue {
    /// Correct queue: a waiter checks again after each event, until its key is the first.
    pub fn new(keys: Arc<dyn KeySpace>) -> Self {
        Self { keys, one_event: false }
    }

    /// The mistake: a waiter believes that it holds the lock after the first event.
    #[must_use]
    pub fn one_event(mut self) -> Self {
        self.one_event = true;
        self
    }
}

/// Prefix of a queue's keys.
pub(crate) fn queue_of(name: &str) -> String {
    format!("{name}/")
}

#[async_trait]
impl Contestant for PrintedQueue {
    fn label(&self) -> String {
        match self.one_event {
            true => "queue of keys; one event instead of a loop".into(),
            false => "queue of keys; waits in a loop".into(),
        }
    }

    fn nature(&self) -> Nature {
        self.keys.nature()
    }

    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        let keys = self.keys.connect().await?;
        Ok(Arc::new(Client { keys, one_event: self.one_event }))
    }
}

struct Client {
    keys: Arc<dyn Keys>,
    one_event: bool,
}

impl Client {
    /// Takes a place at the end of the queue, renewed until the value is dropped.
    async fn join(&self, name: &str, ttl: Duration) -> Result<Held, Failure> {
        let tickets = format!("{name}#tickets");
        self.keys.set_nx(&tickets, "0").await?;
        let number = -self.keys.decr(&tickets).await?;
        let key = format!("{}{number:010}", queue_of(name));
        self.keys.set_nx_px(&key, "waiter", ttl).await?;
        let (keys, own) = (self.keys.clone(), key.clone());
        let renew = async move {
            loop {
                sleep(ttl / 3).await;
                let _ = keys.compare_and_expire(&own, "waiter", ttl).await;
            }
        };
        let watchdog = tokio::spawn(renew).abort_handle();
        Ok(Held { keys: self.keys.clone(), key, watchdog })
    }
}

#[async_trait]
impl Player for Client {
    async fn acquire(
        &self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<Box<dyn Hold>>, Failure> {
        let (time, place) = (Time::start(), self.join(name, ttl).await?);
        loop {
            let all = self.keys.names(&queue_of(name)).await?;
            let Some(before) = all.into_iter().rfind(|key| *key < place.key) else { break };
            match timeout(wait.saturating_sub(time.since()), self.keys.gone(&before)).await {
                Ok(told) => told?,
                Err(_) => {
                    Box::new(place).release().await?;
                    return Ok(None);
                }
            };
            if self.one_event {
                break;
            }
        }
        Ok(Some(Box::new(place)))
    }
}

struct Held {
    keys: Arc<dyn Keys>,
    key: String,
    watchdog: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watchdog.abort();
    }
}

#[async_trait]
impl Hold for Held {
    fn token(&self) -> Option<u64> {
        None
    }

    fn believes(&self) -> bool {
        true
    }

    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        self.watchdog.abort();
        self.keys.del(&self.key).await
    }
}
