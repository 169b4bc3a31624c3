//! Every change of a lock's state is an event with the documented name and fields.
#![cfg(feature = "memory")]

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{LockName, Locks};
use lock_memory::MemoryStore;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

/// Writes down each event as `name field field ..`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<BTreeSet<String>>>);

struct Fields {
    name: String,
    fields: Vec<&'static str>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.name = format!("{value:?}"),
            other => self.fields.push(other),
        }
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "distlock" {
            return;
        }
        let mut seen = Fields { name: String::new(), fields: Vec::new() };
        event.record(&mut seen);
        self.0.lock().unwrap().insert(format!("{} {}", seen.name, seen.fields.join(" ")));
    }
}

#[tokio::test(start_paused = true)]
async fn every_state_change_is_told() {
    let log = Log::default();
    let _default = tracing_subscriber::registry().with(log.clone()).set_default();
    let store = MemoryStore::new();
    let client = store.client();
    let faults = client.faults();
    let locks = Locks::new(client);
    let lock = locks.lock("traced").unwrap().ttl(Duration::from_secs(2));

    let guard = lock.acquire().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    let waiter = tokio::spawn(lock.acquire());
    tokio::time::sleep(Duration::from_secs(2)).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    store.delete(&LockName::new("traced").unwrap());
    guard.lost().await;
    let guard = lock.acquire().await.unwrap();
    let other = locks.lock("other").unwrap().ttl(Duration::from_secs(2));
    let released_in_vain = other.acquire().await.unwrap();
    faults.partition();
    drop(released_in_vain);
    guard.lost().await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    let expected = [
        "granted lock attempt token waited_ms",
        "lost lock reason",
        "queued lock attempt position",
        "refused lock attempt error",
        "release_failed lock token error",
        "released lock token",
        "renewal_failed store error",
        "renewed store locks",
    ];
    let seen = log.0.lock().unwrap().clone();
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
