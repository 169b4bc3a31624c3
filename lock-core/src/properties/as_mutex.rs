//! Other kinds of locks that act as an exclusive one.

use std::time::Duration;

use async_trait::async_trait;

use super::{Client, Failure, Harness};
use crate::{Kind, LockName};

/// The kinds that act as an exclusive lock, with a name for each.
pub const AS_MUTEX: &[(&str, Kind)] = &[("semaphore_of_one", Kind::Permit { weight: 1, limit: 1 })];

/// A harness whose checks of an exclusive lock are made with another kind.
#[allow(missing_debug_implementations, reason = "a harness need not be printed")]
pub struct AsMutex {
    /// The store.
    pub harness: Box<dyn Harness>,
    /// What is asked for.
    pub kind: Kind,
}

#[async_trait]
impl Harness for AsMutex {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        self.harness.client().await
    }

    fn ttl(&self) -> Duration {
        self.harness.ttl()
    }

    fn kind(&self) -> Kind {
        self.kind
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
