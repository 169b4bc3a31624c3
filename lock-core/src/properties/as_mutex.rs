//! Other locks that act as an exclusive one.

use std::{future::Future, time::Duration};

use async_trait::async_trait;

use super::{Client, Failure, Guise, Harness};
use crate::{Held, Kind, Lock, LockGuard, LockName, LockSet, Result, api::run::run_while_held};

/// The locks that act as an exclusive one, with a name for each.
pub const AS_MUTEX: &[(&str, Guise)] = &[
    ("semaphore_of_one", Guise::Lock(Kind::Permit { weight: 1, limit: 1 })),
    ("leadership", Guise::Leadership),
    ("set_of_one", Guise::SetOfOne),
];

impl Guise {
    pub(super) fn lock(self, client: &dyn Client, name: &LockName) -> Result<Mutex> {
        let locks = client.locks();
        match self {
            Self::Lock(kind) => Ok(Mutex::Lock(locks.lock(name)?.kind(kind)?)),
            Self::Leadership => Ok(Mutex::Lock(locks.election(name)?.with_value("the leader"))),
            Self::SetOfOne => Ok(Mutex::Set(locks.all([name])?.alone_too())),
        }
    }
}

/// A lock that acts as an exclusive one, with the methods that the checks use.
#[derive(Clone, Debug)]
pub(super) enum Mutex {
    Lock(Lock),
    Set(LockSet),
}

macro_rules! options {
    ($($option:ident($($value:ident: $type:ty)?)),+) => {$(
        pub(super) fn $option(self $(, $value: $type)?) -> Self {
            match self {
                Self::Lock(lock) => Self::Lock(lock.$option($($value)?)),
                Self::Set(set) => Self::Set(set.$option($($value)?)),
            }
        }
    )+};
}

impl Mutex {
    options!(
        ttl(ttl: Duration),
        wait(limit: Duration),
        max_hold(limit: Duration),
        at_least(time: Duration),
        holder(description: &str),
        fixed_term(),
        wait_through_outages()
    );

    pub(super) fn acquire(&self) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        let this = self.clone();
        async move {
            match this {
                Self::Lock(lock) => lock.acquire().await,
                Self::Set(set) => Ok(set.acquire().await?.only()),
            }
        }
    }

    pub(super) fn try_acquire(
        &self,
    ) -> impl Future<Output = Result<Option<LockGuard>>> + Send + use<> {
        let this = self.clone();
        async move {
            match this {
                Self::Lock(lock) => lock.try_acquire().await,
                Self::Set(set) => Ok(set.try_acquire().await?.map(|guard| guard.only())),
            }
        }
    }

    pub(super) fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire();
        async move { run_while_held(work, guard.await?).await }
    }
}

/// A harness that makes the checks of an exclusive lock with another one.
#[allow(missing_debug_implementations, reason = "a harness need not be printed")]
pub struct AsMutex {
    /// The store.
    pub harness: Box<dyn Harness>,
    /// The lock that acts as an exclusive one.
    pub guise: Guise,
}

#[async_trait]
impl Harness for AsMutex {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        self.harness.client().await
    }

    fn ttl(&self) -> Duration {
        self.harness.ttl()
    }

    fn longest_name(&self) -> usize {
        self.harness.longest_name()
    }

    fn guise(&self) -> Guise {
        self.guise
    }

    async fn restart(&self) -> Result<(), Failure> {
        self.harness.restart().await
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        self.harness.delete(name).await
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        self.harness.leftovers().await
    }
}
