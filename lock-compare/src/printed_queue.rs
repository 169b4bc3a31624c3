//! A queue of keys, as described in the articles: each waiter has a key with its own number, and
//! watches the key just before it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::timeout;

use crate::{
    Contestant, Failure, Give, Granted, Hold, KeySpace, Keys, Nature, Player, printed::Held,
    time::Time,
};

#[derive(Clone)]
pub(crate) struct PrintedQueue {
    keys: Arc<dyn KeySpace>,
    one_event: bool,
}

impl PrintedQueue {
    /// Correct queue: a waiter checks again after each event, until its key is the first.
    pub(crate) fn new(keys: Arc<dyn KeySpace>) -> Self {
        Self { keys, one_event: false }
    }

    /// The mistake: a waiter believes that it holds the lock after the first event.
    pub(crate) fn one_event(mut self) -> Self {
        self.one_event = true;
        self
    }
}

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
        let (tickets, value) = (format!("{name}#tickets"), "waiter".to_owned());
        self.keys.set_nx(&tickets, "0", None).await?;
        let left =
            self.keys.decr(&tickets, false).await?.ok_or("there is no number to count down")?;
        let key = format!("{}{:010}", queue_of(name), -left);
        self.keys.set_nx(&key, &value, Some(ttl)).await?;
        let (keys, give) = (self.keys.clone(), Give::BareDel);
        let mut place = Held { keys, key, value, give, watchdog: None };
        place.renew(ttl);
        Ok(place)
    }
}

#[async_trait]
impl Player for Client {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
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
