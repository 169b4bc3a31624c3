//! The clients of one database within this process, which wake each other.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, Weak},
};

use lock_core::{LockName, keep::poison::lock};

use super::waiters::Waiters;

type Databases = HashMap<String, Weak<Neighbours>>;

/// All clients of one database.
#[derive(Debug)]
pub(super) struct Neighbours(Mutex<Vec<Weak<Waiters>>>);

impl Neighbours {
    /// The clients of the database with this name.
    pub(super) fn of(database: &str) -> Arc<Self> {
        static DATABASES: LazyLock<Mutex<Databases>> = LazyLock::new(Mutex::default);
        let mut databases = lock(&DATABASES);
        databases.retain(|_, neighbours| neighbours.strong_count() > 0);
        let known = databases.entry(database.to_owned()).or_default();
        known.upgrade().unwrap_or_else(|| {
            let neighbours = Arc::new(Self(Mutex::default()));
            *known = Arc::downgrade(&neighbours);
            neighbours
        })
    }

    pub(super) fn join(&self, client: &Arc<Waiters>) {
        let mut clients = lock(&self.0);
        clients.retain(|other| other.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }

    /// Wakes the client that is first in this queue, if it is another one than `by`. That client
    /// wakes the next one if it shares the lock.
    pub(super) fn ring(&self, by: &Waiters, name: &LockName) {
        let clients: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let first = |client: &&Arc<Waiters>| client.book().first_waiting(name).unwrap_or(u64::MAX);
        let first = clients.iter().min_by_key(first).map(|client| client.id);
        for client in clients.iter().filter(|client| client.id != by.id) {
            match Some(client.id) == first {
                true => client.ring(name),
                false => client.heard(name),
            }
        }
    }
}
