//! Locks as printed in the articles, made of keys.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};
use uuid::Uuid;

use crate::{Contestant, Failure, Hold, KeySpace, Keys, Nature, Player, time::Time};

/// Waiters poll, because they get no notification.
const PAUSE: Duration = Duration::from_millis(10);

/// How the key and its expiry are set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Take {
    /// `SETNX`, and then `EXPIRE`.
    TwoSteps,
    /// `SET .. NX PX`.
    OneStep,
    /// `SETNX`, or a row with a unique key, and nothing more: the lock never expires.
    NoExpiry,
}

/// How the key is deleted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Give {
    /// `DEL`, regardless of the holder.
    BareDel,
    /// The script that compares the value first.
    CompareAndDel,
}

/// A lock from the articles: a key with a unique value.
#[derive(Clone)]
pub struct Printed {
    keys: Arc<dyn KeySpace>,
    take: Take,
    give: Give,
    renews: bool,
    watches: bool,
    pause: Duration,
}

impl Printed {
    /// A lock without a watchdog.
    pub fn new(keys: Arc<dyn KeySpace>, take: Take, give: Give) -> Self {
        Self { keys, take, give, renews: false, watches: false, pause: PAUSE }
    }

    /// Adds a watchdog that prolongs the key every third of its TTL.
    #[must_use]
    pub fn renewed(mut self) -> Self {
        self.renews = true;
        self
    }

    /// Every waiter watches the key instead of polling, if the store notifies clients of its end.
    #[must_use]
    pub fn watching(mut self) -> Self {
        self.watches = true;
        self
    }

    /// Sets the pause between two tries of a waiter. 10 ms by default.
    #[must_use]
    pub fn polling(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

#[async_trait]
impl Contestant for Printed {
    fn label(&self) -> String {
        let take = match self.take {
            Take::TwoSteps => "SETNX, then EXPIRE",
            Take::OneStep => "SET NX PX",
            Take::NoExpiry => "SETNX without an expiry",
        };
        let give = match self.give {
            Give::BareDel => "bare DEL",
            Give::CompareAndDel => "compare and DEL",
        };
        let renews = if self.renews { ", watchdog" } else { "" };
        let watches = if self.watches { ", everyone watches one key" } else { "" };
        format!("{take}{renews}{watches}; {give}")
    }

    fn nature(&self) -> Nature {
        self.keys.nature()
    }

    fn boxed(&self) -> Box<dyn Contestant> {
        Box::new(self.clone())
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        let keys = self.keys.connect().await?;
        Ok(Arc::new(Client { keys, lock: self.clone() }))
    }
}

struct Client {
    keys: Arc<dyn Keys>,
    lock: Printed,
}

impl Client {
    async fn take(&self, key: &str, value: &str, ttl: Duration) -> Result<bool, Failure> {
        match self.lock.take {
            Take::OneStep => self.keys.set_nx_px(key, value, ttl).await,
            Take::NoExpiry => self.keys.set_nx(key, value).await,
            Take::TwoSteps => {
                Ok(self.keys.set_nx(key, value).await? && self.keys.expire(key, ttl).await?)
            }
        }
    }

    /// Waits until another try is useful, at most for the time `left`.
    async fn pause(&self, key: &str, left: Duration) -> Result<(), Failure> {
        if self.lock.watches {
            let told = timeout(left, self.keys.gone(key)).await;
            if told.unwrap_or(Ok(true))? {
                return Ok(());
            }
        }
        sleep(self.lock.pause).await;
        Ok(())
    }

    fn watch(&self, key: String, value: String, ttl: Duration) -> AbortHandle {
        let keys = self.keys.clone();
        let renew = async move {
            loop {
                sleep(ttl / 3).await;
                // The articles' watchdog reports failures to no one.
                let _ = keys.compare_and_expire(&key, &value, ttl).await;
            }
        };
        tokio::spawn(renew).abort_handle()
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
        let (value, time) = (Uuid::new_v4().to_string(), Time::start());
        while !self.take(name, &value, ttl).await? {
            if time.since() >= wait {
                return Ok(None);
            }
            self.pause(name, wait.saturating_sub(time.since())).await?;
        }
        let watchdog = self.lock.renews.then(|| self.watch(name.to_owned(), value.clone(), ttl));
        let (keys, key, give) = (self.keys.clone(), name.to_owned(), self.lock.give);
        Ok(Some(Box::new(Held { keys, key, value, give, watchdog })))
    }
}

struct Held {
    keys: Arc<dyn Keys>,
    key: String,
    value: String,
    give: Give,
    watchdog: Option<AbortHandle>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watchdog.iter().for_each(AbortHandle::abort);
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
        self.watchdog.iter().for_each(AbortHandle::abort);
        match self.give {
            Give::BareDel => self.keys.del(&self.key).await,
            Give::CompareAndDel => self.keys.compare_and_del(&self.key, &self.value).await,
        }
    }
}
