//! Waiters of distlock, and waiters that only check the one before them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::{Error, Locks};
use tokio::{sync::Mutex, task::JoinHandle, time::sleep};
use uuid::Uuid;

use crate::{
    Contestant, Distlock, Failure, Hold, Player,
    scenario::{Belief, Waiter, has, joined, until_line},
};

const TTL: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(60);
/// A wait of usual length: a client may need a moment to set all watches.
const SETTLED: Duration = Duration::from_millis(500);

type Granted = Result<Option<Box<dyn Hold>>, Failure>;

/// A waiter with a place in distlock's queue.
pub(crate) struct InLine {
    client: Arc<dyn Player>,
    operator: Locks,
    /// Whether it ignores the reply, and believes that it holds when the one before it is gone.
    is_blind: bool,
    /// Time from the join to the next event.
    settled: Duration,
    place: Mutex<Option<Place>>,
}

struct Place {
    name: String,
    holder: Uuid,
    own: Uuid,
    waits: JoinHandle<Granted>,
}

impl InLine {
    /// A waiter of distlock.
    pub(crate) async fn of(lock: &Distlock, operator: Locks) -> Result<Self, Failure> {
        let client = lock.client().await?;
        Ok(Self { client, operator, is_blind: false, settled: SETTLED, place: Mutex::default() })
    }

    /// A waiter that loses its place as soon as it has one.
    pub(crate) fn hurried(mut self) -> Self {
        self.settled = Duration::ZERO;
        self
    }

    /// A waiter with an ordinary place that only checks the one before it.
    pub(crate) fn blind(mut self) -> Self {
        self.is_blind = true;
        self
    }
}

#[async_trait]
impl Waiter for InLine {
    async fn join(&self, name: &str) -> Result<(), Failure> {
        let line = until_line(&self.operator, name, |line| line.len() == 1).await?;
        let holder = line[0].attempt.ok_or("the holder's entry shows no attempt")?;
        let (client, key) = (self.client.clone(), name.to_owned());
        let waits = tokio::spawn(async move { client.acquire(&key, TTL, PATIENCE).await });
        let own = joined(&self.operator, name, 1).await?;
        sleep(self.settled).await;
        *self.place.lock().await = Some(Place { name: name.to_owned(), holder, own, waits });
        Ok(())
    }

    async fn lose_place(&self, name: &str) -> Result<(), Failure> {
        let place = self.place.lock().await;
        let own = place.as_ref().ok_or("nobody waits")?.own;
        if !self.operator.revoke(name, own).await? {
            return Err("B's place was not there to be revoked".into());
        }
        until_line(&self.operator, name, |line| !has(line, own)).await.map(drop)
    }

    async fn see_next(&self, name: &str) -> Result<(), Failure> {
        joined(&self.operator, name, 1).await.map(drop)
    }

    async fn belief(&self) -> Result<Belief, Failure> {
        let place = self.place.lock().await.take().ok_or("nobody waits")?;
        if self.is_blind {
            let gone = |line: &[distlock::Entry]| !has(line, place.holder);
            until_line(&self.operator, &place.name, gone).await?;
            place.waits.abort();
            return Ok(Belief::Holds("the one before it is gone".into(), None));
        }
        match place.waits.await? {
            Ok(Some(hold)) => Ok(Belief::Holds("it was granted".into(), Some(hold))),
            Ok(None) => Ok(Belief::Told("it waited in vain".into())),
            Err(failure) => match failure.downcast_ref::<Error>() {
                Some(error @ Error::PlaceLost { .. }) => Ok(Belief::Told(error.to_string())),
                _ => Err(failure),
            },
        }
    }
}
