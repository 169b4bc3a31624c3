//! Moves a slot.

use super::RedisCluster;
use crate::LabError;

/// Time limit of moving one batch of keys, in milliseconds: less than the lab waits for the answer, and
/// more than a machine stands still.
const LIMIT: &[u8] = b"15000";

impl RedisCluster {
    /// Moves a slot with its keys to another primary, as an operator does, one key at a time. Until
    /// it ends, some keys are here and some there.
    ///
    /// Fails if a node refuses a step, as it does if the slot's owner changes meanwhile.
    ///
    /// A dropped future leaves the slot half moved.
    pub async fn migrate(&self, slot: u16, to: usize) -> Result<(), LabError> {
        let from = self.owner(slot).await?;
        if from == to {
            return Ok(());
        }
        self.begin_migration(slot, to).await?;
        while self.move_key(slot, from, to).await? {}
        self.end_migration(slot, from, to).await
    }

    /// Begins a [`migrate`](Self::migrate): both nodes know of it, and all keys are still where they
    /// were. Returns the slot's owner.
    pub async fn begin_migration(&self, slot: u16, to: usize) -> Result<usize, LabError> {
        let from = self.owner(slot).await?;
        let (old, new) = (self.id_of(from).await?, self.id_of(to).await?);
        self.set_slot(to, slot, &["IMPORTING", &old]).await?;
        self.set_slot(from, slot, &["MIGRATING", &new]).await?;
        Ok(from)
    }

    /// Moves one key of a slot whose migration has begun. Returns whether there was one.
    pub async fn move_key(&self, slot: u16, from: usize, to: usize) -> Result<bool, LabError> {
        let number = slot.to_string();
        let question = [&b"CLUSTER"[..], b"GETKEYSINSLOT", number.as_bytes(), b"1"];
        let found = self.node(from).call(&question).await?.into_strings();
        let Some(key) = found.first() else { return Ok(false) };
        self.move_this_key(key, from, to).await.map(|()| true)
    }

    /// Moves this key of a slot whose migration has begun. Servers differ in the key that
    /// [`move_key`](Self::move_key) moves first.
    pub async fn move_this_key(&self, key: &[u8], from: usize, to: usize) -> Result<(), LabError> {
        let addr = self.node(to).addr();
        let (host, port) = (addr.ip().to_string(), addr.port().to_string());
        let mut order = vec![&b"MIGRATE"[..], host.as_bytes(), port.as_bytes(), b"", b"0", LIMIT];
        if let Some(password) = &self.node(to).password {
            order.extend([&b"AUTH"[..], password.as_bytes()]);
        }
        order.extend([&b"KEYS"[..], key]);
        self.node(from).command(&order).await.map(drop)
    }

    /// Ends a migration: from now on the slot is the other node's.
    ///
    /// Fails also if there are keys left.
    pub async fn end_migration(&self, slot: u16, from: usize, to: usize) -> Result<(), LabError> {
        let new = self.id_of(to).await?;
        // The new owner first: a slot without an owner would be lost with it.
        self.set_slot(to, slot, &["NODE", &new]).await?;
        self.set_slot(from, slot, &["NODE", &new]).await?;
        for other in self.primaries().await? {
            if ![from, to].contains(&other) && self.node(other).runs() {
                self.set_slot(other, slot, &["NODE", &new]).await?;
            }
        }
        Ok(())
    }

    async fn set_slot(&self, node: usize, slot: u16, what: &[&str]) -> Result<(), LabError> {
        let slot = slot.to_string();
        let mut order = vec![&b"CLUSTER"[..], b"SETSLOT", slot.as_bytes()];
        order.extend(what.iter().map(|word| word.as_bytes()));
        self.node(node).command(&order).await.map(drop)
    }

    pub(super) async fn id_of(&self, node: usize) -> Result<String, LabError> {
        self.node(node).command(&[b"CLUSTER", b"MYID"]).await
    }
}
