//! The driver of a store without a queue.

use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    hold::{self, Hold, PolledLease},
    store::PolledStore,
    way::Way,
};
use crate::{
    Attempt, Clock, DistributedLock, Entry, Error, FencingToken, Guarantees, Instant, Lease,
    LockName, LossReason, Reach, Request, Result, Term, Wait, keep::poison::lock,
};

/// The driver of a [`PolledStore`].
#[derive(Debug)]
pub struct Polling<S: PolledStore> {
    way: Arc<Way<S>>,
    closed: CancellationToken,
    /// Present holds, and some that are over.
    holds: Mutex<Vec<Weak<Hold<S>>>>,
}

impl<S: PolledStore> Polling<S> {
    /// A driver of a store that is connected.
    pub fn new(store: S) -> Self {
        let way = Arc::new(Way { store, reach: Reach::default() });
        Self { way, closed: CancellationToken::new(), holds: Mutex::default() }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.way.store
    }

    fn remember(&self, hold: &Arc<Hold<S>>) {
        let mut holds = lock(&self.holds);
        // Holds that are over are removed only when there is no room, so the cost per hold is low.
        if holds.len() == holds.capacity() {
            holds.retain(|hold| hold.strong_count() > 0);
        }
        holds.push(Arc::downgrade(hold));
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.is_cancelled() {
            true => Err(Error::closed(self.way.store.guarantees().store)),
            false => Ok(()),
        }
    }

    /// Removes what an attempt may have left, in the background: its caller need not wait for it.
    fn clean_up(&self, request: &Request, attempt: Uuid) {
        let (way, name, ttl) = (self.way.clone(), request.name.clone(), request.ttl);
        tokio::spawn(async move { way.remove(&name, attempt, ttl).await });
    }

    async fn hold(
        &self,
        request: Request,
        attempt: Uuid,
        sent: Instant,
        token: FencingToken,
    ) -> Result<Box<dyn Lease>> {
        let term = request.term;
        let hold = Arc::new(Hold::new(self.way.clone(), request, attempt, sent, token));
        self.remember(&hold);
        // Closed meanwhile: the close may have missed this hold.
        if let Err(closed) = self.check_open() {
            hold.give_back().await?;
            return Err(closed);
        }
        if term == Term::Renewed {
            tokio::spawn(hold::renew(Arc::downgrade(&hold)));
        }
        Ok(Box::new(PolledLease(hold)))
    }
}

#[async_trait]
impl<S: PolledStore> DistributedLock for Polling<S> {
    fn guarantees(&self) -> &Guarantees {
        self.way.store.guarantees()
    }

    fn clock(&self) -> Clock {
        self.way.store.clock()
    }

    fn reach(&self) -> Option<Reach> {
        Some(self.way.reach.clone())
    }

    async fn acquire(&self, request: Request, attempt: Attempt) -> Result<Box<dyn Lease>> {
        let (way, clock) = (&self.way, self.clock());
        let began = clock.now();
        let (mut answered, mut doubtful) = (began, false);
        let end = loop {
            if let Err(closed) = self.check_open() {
                break closed;
            }
            let sent = clock.now();
            match way.heard("acquire", way.store.take(&request, attempt.id()).await) {
                Ok(Some(token)) => return self.hold(request, attempt.id(), sent, token).await,
                Ok(None) if request.wait == Wait::Try => break contended(&request),
                Ok(None) => {
                    answered = clock.now();
                    attempt.queued(&request.name, None);
                }
                Err(error) => {
                    doubtful = !way.store.cleans_up();
                    let passes = request.wait == Wait::Queue && error.is_unavailable();
                    if !passes || clock.now().since(answered) >= request.ttl {
                        break error;
                    }
                    if let Error::Unavailable { source, .. } = &error {
                        attempt.put_off(source);
                    }
                }
            }
            tokio::select! {
                () = attempt.cancelled() => break contended(&request),
                () = self.closed.cancelled() => {}
                () = way.pause(began) => {}
            }
        };
        if doubtful {
            self.clean_up(&request, attempt.id());
        }
        Err(end)
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Entry>> {
        self.check_open()?;
        let holder = self.way.store.holder(name).await;
        Ok(self.way.heard("inspect", holder)?.into_iter().collect())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockName>> {
        self.check_open()?;
        self.way.heard("names", self.way.store.names(prefix).await)
    }

    async fn revoke(&self, name: &LockName, attempt: Uuid) -> Result<bool> {
        self.check_open()?;
        self.way.heard("revoke", self.way.store.remove(name, attempt).await)
    }

    async fn close(&self) -> Result<()> {
        self.closed.cancel();
        let held: Vec<_> = lock(&self.holds).iter().filter_map(Weak::upgrade).collect();
        // All holds are lost before the first request is answered.
        for hold in &held {
            hold.validity.lose(LossReason::Closed);
        }
        let returns = held.into_iter().map(|hold| async move { hold.give_back().await });
        // One that is refused must not cut the others off.
        futures_util::future::join_all(returns).await.into_iter().collect()
    }
}

fn contended(request: &Request) -> Error {
    Error::Contended { name: request.name.clone() }
}
