//! A client's way to its store.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use uuid::Uuid;

use super::store::PolledStore;
use crate::{Effect, Error, LockName, Reach, Result, deadline::jitter};

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

    /// Removes an entry: tries again while the store is out of reach, for one TTL, unless the
    /// store is closed.
    pub(super) async fn remove(&self, name: &LockName, attempt: Uuid, ttl: Duration) -> Result<()> {
        let clock = self.store.clock();
        let limit = clock.now() + ttl;
        loop {
            match self.heard("release", self.store.remove(name, attempt).await) {
                Ok(_) => return Ok(()),
                Err(error)
                    if !error.is_unavailable()
                        || self.store.is_closed()
                        || clock.now() >= limit =>
                {
                    return Err(error);
                }
                Err(_) => clock.sleep_until(clock.now() + jitter(self.store.pause())).await,
            }
        }
    }
}
