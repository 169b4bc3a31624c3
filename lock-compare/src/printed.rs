//! Locks as printed in the articles, made of keys.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};
use uuid::Uuid;

use crate::{Contestant, Failure, Granted, Hold, KeySpace, Keys, Nature, Player, time::Time};

/// Waiters poll, because they get no notification.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Take {
    /// `SETNX`, and then `EXPIRE`.
    TwoSteps,
    /// `SET .. NX PX`.
    OneStep,
    /// `SETNX`, or a row with a unique key, and nothing more: the lock never expires.
    NoExpiry,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Give {
    /// `DEL`, regardless of the holder.
    BareDel,
    /// The script that compares the value first.
    CompareAndDel,
}

/// A lock from the articles: a key with a unique value.
#[derive(Clone)]
pub(crate) struct Printed {
    keys: Arc<dyn KeySpace>,
    take: Take,
    give: Give,
    renews: bool,
    watches: bool,
    pause: Duration,
    tally: Tally,
}

/// Counts of a lock's clients. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    wakes: Arc<AtomicU64>,
    /// Requests for a key that another client has.
    refused: Arc<watch::Sender<u64>>,
}

impl Tally {
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Relaxed)
    }

    /// How often the key was refused so far, because another client had it.
    pub(crate) fn refused(&self) -> u64 {
        *self.refused.borrow()
    }

    pub(crate) async fn until_refused(&self, times: u64) {
        let mut refused = self.refused.subscribe();
        // The sender lives as long as `self`.
        let _ = refused.wait_for(|count| *count >= times).await;
    }
}

impl Printed {
    pub(crate) fn new(keys: Arc<dyn KeySpace>, take: Take, give: Give) -> Self {
        let tally = Tally::default();
        Self { keys, take, give, renews: false, watches: false, pause: PAUSE, tally }
    }

    /// Adds a watchdog that prolongs the key every third of its TTL.
    pub(crate) fn renewed(mut self) -> Self {
        self.renews = true;
        self
    }

    /// Every waiter watches the key instead of polling, if the store notifies clients of its end.
    pub(crate) fn watching(mut self) -> Self {
        self.watches = true;
        self
    }

    /// Sets the pause between two tries of a waiter. 10 ms by default.
    pub(crate) fn polling(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The counts, which go on rising.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.clone()
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
        let end = (self.lock.take == Take::OneStep).then_some(ttl);
        let ours = self.keys.set_nx(key, value, end).await?;
        if !ours {
            self.lock.tally.refused.send_modify(|count| *count += 1);
        }
        Ok(ours && (self.lock.take != Take::TwoSteps || self.keys.expire(key, ttl, None).await?))
    }

    /// Waits until another try is useful, at most for the time `left`.
    async fn pause(&self, key: &str, left: Duration) -> Result<(), Failure> {
        if self.lock.watches {
            match timeout(left, self.keys.gone(key)).await {
                Ok(Ok(false)) => {}
                Ok(told) => {
                    told?;
                    self.lock.tally.wakes.fetch_add(1, Relaxed);
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
        sleep(self.lock.pause).await;
        Ok(())
    }
}

#[async_trait]
impl Player for Client {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        let (value, time) = (Uuid::new_v4().to_string(), Time::start());
        while !self.take(name, &value, ttl).await? {
            if time.since() >= wait {
                return Ok(None);
            }
            self.pause(name, wait.saturating_sub(time.since())).await?;
        }
        let (keys, key, give) = (self.keys.clone(), name.to_owned(), self.lock.give);
        let mut held = Held { keys, key, value, give, watchdog: None };
        if self.lock.renews {
            held.renew(ttl);
        }
        Ok(Some(Box::new(held)))
    }
}

pub(crate) struct Held {
    pub(crate) keys: Arc<dyn Keys>,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) give: Give,
    pub(crate) watchdog: Option<AbortHandle>,
}

impl Held {
    /// Prolongs the key every third of its TTL, until the value is dropped.
    pub(crate) fn renew(&mut self, ttl: Duration) {
        let (keys, key, value) = (self.keys.clone(), self.key.clone(), self.value.clone());
        let renew = async move {
            loop {
                sleep(ttl / 3).await;
                // The articles' watchdog reports failures to no one.
                let _ = keys.expire(&key, ttl, Some(&value)).await;
            }
        };
        self.watchdog = Some(tokio::spawn(renew).abort_handle());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.watchdog.iter().for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Hold for Held {
    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        self.watchdog.iter().for_each(AbortHandle::abort);
        let of = (self.give == Give::CompareAndDel).then_some(&*self.value);
        self.keys.del(&self.key, of).await
    }
}
