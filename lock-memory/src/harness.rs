//! The harness of the executable properties for this store.

use std::time::Duration;

use async_trait::async_trait;
use lock_core::{
    LockName, Locks,
    properties::{Client, Failure, Harness},
};

use crate::{Faults, MemoryStore};

/// A store for the executable properties. Run it with tokio's clock paused: then it takes no time.
#[derive(Clone, Debug)]
pub struct MemoryHarness {
    store: MemoryStore,
}

impl MemoryHarness {
    /// Makes a harness for a store, broken or not.
    pub fn new(store: MemoryStore) -> Self {
        Self { store }
    }
}

#[async_trait]
impl Harness for MemoryHarness {
    async fn client(&self) -> Result<Box<dyn Client>, Failure> {
        let client = self.store.client();
        Ok(Box::new(MemoryClient { faults: client.faults(), locks: Locks::new(client) }))
    }

    fn ttl(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn restart(&self) -> Result<(), Failure> {
        self.store.restart();
        Ok(())
    }

    async fn delete(&self, name: &LockName) -> Result<(), Failure> {
        self.store.delete(name);
        Ok(())
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let (entries, marks) = (self.store.contents(), self.store.marked());
        let entries = entries.iter().map(|entry| format!("{entry:?}"));
        Ok(entries.chain(marks.iter().map(|name| format!("the mark of {name}"))).collect())
    }
}

struct MemoryClient {
    faults: Faults,
    locks: Locks,
}

#[async_trait]
impl Client for MemoryClient {
    fn locks(&self) -> &Locks {
        &self.locks
    }

    async fn cut(&self) -> Result<(), Failure> {
        self.faults.partition();
        Ok(())
    }

    async fn cut_replies(&self) -> Result<(), Failure> {
        self.faults.cut_replies();
        Ok(())
    }

    async fn heal(&self) -> Result<(), Failure> {
        self.faults.heal();
        Ok(())
    }

    async fn lose_replies(&self) -> Result<(), Failure> {
        self.faults.heal();
        // Also of a request that is under way.
        self.faults.lose_reply();
        Ok(())
    }

    async fn crash(&self) -> Result<(), Failure> {
        self.faults.crash();
        Ok(())
    }
}
