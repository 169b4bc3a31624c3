//! Keys in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use lock_core::{Clock, Instant};
use tokio::{sync::Notify, time::timeout};
use uuid::Uuid;

use crate::{Failure, KeySpace, Keys, Nature};

/// Time after which a watched key without an expiry is checked again.
const LONG: Duration = Duration::from_secs(60);

type Map = HashMap<String, Key>;

/// A simulation of Redis's keys. Each command is atomic, as in Redis.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimulatedKeys {
    keys: Arc<Mutex<Map>>,
    /// Notifies all watchers after a deletion.
    deleted: Arc<Notify>,
}

#[derive(Debug)]
struct Key {
    value: String,
    ends: Option<Instant>,
    /// A key that is made again after its deletion gets a new id.
    made: Uuid,
}

impl Key {
    fn new(value: &str, ends: Option<Instant>) -> Self {
        Self { value: value.to_owned(), ends, made: Uuid::new_v4() }
    }
}

impl SimulatedKeys {
    /// The keys that have not expired.
    fn keys(&self) -> MutexGuard<'_, Map> {
        let (mut keys, now) = (self.keys.lock().unwrap_or_else(PoisonError::into_inner), now());
        keys.retain(|_, key| key.ends.is_none_or(|ends| ends > now));
        keys
    }
}

fn now() -> Instant {
    Clock::Boot.now()
}

#[async_trait]
impl KeySpace for SimulatedKeys {
    fn nature(&self) -> Nature {
        Nature::Simulation
    }

    async fn connect(&self) -> Result<Arc<dyn Keys>, Failure> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Keys for SimulatedKeys {
    async fn set_nx(&self, key: &str, value: &str, ttl: Option<Duration>) -> Result<bool, Failure> {
        let mut keys = self.keys();
        let is_new = !keys.contains_key(key);
        if is_new {
            keys.insert(key.to_owned(), Key::new(value, ttl.map(|ttl| now() + ttl)));
        }
        Ok(is_new)
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.keys().insert(key.to_owned(), Key::new(value, None));
        Ok(())
    }

    async fn expire(&self, key: &str, ttl: Duration, of: Option<&str>) -> Result<bool, Failure> {
        let mut keys = self.keys();
        let key = keys.get_mut(key).filter(|key| of.is_none_or(|value| key.value == value));
        Ok(key.map(|key| key.ends = Some(now() + ttl)).is_some())
    }

    async fn ttl(&self, key: &str) -> Result<Option<Option<Duration>>, Failure> {
        Ok(self.keys().get(key).map(|key| key.ends.map(|ends| ends.since(now()))))
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Failure> {
        Ok(self.keys().get(key).map(|key| key.value.clone()))
    }

    async fn del(&self, key: &str, of: Option<&str>) -> Result<bool, Failure> {
        let mut keys = self.keys();
        let fits = |key: &Key| of.is_none_or(|value| key.value == value);
        let removed = keys.get(key).is_some_and(fits) && keys.remove(key).is_some();
        drop(keys);
        self.deleted.notify_waiters();
        Ok(removed)
    }

    async fn decr(&self, key: &str, unless_empty: bool) -> Result<Option<i64>, Failure> {
        let mut keys = self.keys();
        let key = keys.entry(key.to_owned()).or_insert_with(|| Key::new("0", None));
        let left = key.value.parse::<i64>()? - 1;
        if unless_empty && left < 0 {
            return Ok(None);
        }
        key.value = left.to_string();
        Ok(Some(left))
    }

    async fn gone(&self, key: &str) -> Result<bool, Failure> {
        let Some(made) = self.keys().get(key).map(|key| key.made) else { return Ok(true) };
        loop {
            let deleted = self.deleted.notified();
            tokio::pin!(deleted);
            deleted.as_mut().enable();
            let ends = match self.keys().get(key) {
                Some(key) if key.made == made => key.ends.map_or(LONG, |ends| ends.since(now())),
                _ => return Ok(true),
            };
            let _ = timeout(ends, deleted).await;
        }
    }

    async fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let keys = self.keys();
        let mut names: Vec<_> =
            keys.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        names.sort();
        Ok(names)
    }
}
