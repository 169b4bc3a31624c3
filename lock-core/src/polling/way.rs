//! A client's way to its store.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use uuid::Uuid;

use super::store::PolledStore;
use crate::{Effect, Error, Instant, LockName, Reach, Result, deadline::jitter};

/// What waits for long asks after this time at the latest, if the store's pause is not longer.
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Way<S> {
    pub(super) store: S,
    pub(super) reach: Reach,
}

impl<S: PolledStore> Way<S> {
    /// Turns an answer into the caller's result, and records whether the store is reached.
    pub(super) fn heard<T>(&self, op: &'static str, answer: io::Result<T>) -> Result<T> {
        use ErrorKind::{InvalidData, InvalidFilename, InvalidInput, PermissionDenied};
        let (store, effect) = (self.store.guarantees().store, Effect::Unknown);
        let answer = answer.map_err(|error| match error.kind() {
            PermissionDenied => Error::Denied { store, op, source: error.into() },
            InvalidData | InvalidFilename | InvalidInput => {
                Error::Rejected { store, op, effect, source: error.into() }
            }
            _ => Error::Unavailable { store, op, effect, source: error.into() },
        });
        match &answer {
            Err(error) if error.is_unavailable() => self.reach.broke(error),
            _ => self.reach.works(),
        }
        answer
    }

    /// Waits before the next try of what began at this time: for the store's pause, or for a
    /// twentieth of the time that has passed, up to [`LONGEST`].
    pub(super) async fn pause(&self, began: Instant) {
        let clock = self.store.clock();
        let passed = clock.now().since(began);
        let pause = self.store.pause().max((passed / 20).min(LONGEST));
        clock.sleep_until(clock.now() + jitter(pause)).await;
    }

    /// Removes an entry: tries again while the store is out of reach, for one TTL, unless the
    /// store is closed.
    pub(super) async fn remove(&self, name: &LockName, attempt: Uuid, ttl: Duration) -> Result<()> {
        let clock = self.store.clock();
        let began = clock.now();
        loop {
            match self.heard("release", self.store.remove(name, attempt).await) {
                Ok(_) => return Ok(()),
                Err(error)
                    if !error.is_unavailable()
                        || self.store.is_closed()
                        || clock.now() >= began + ttl =>
                {
                    return Err(error);
                }
                Err(_) => self.pause(began).await,
            }
        }
    }
}
