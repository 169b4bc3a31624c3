//! Every change of a lock's state is an event with the documented name and fields.
//!
//! Each test has a process of its own: a first event of another test at the wrong moment can turn
//! that event off for all.
#![cfg(feature = "memory")]

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{LockName, Locks, Owner};
use lock_memory::MemoryStore;
use tracing::{
    Event, Instrument, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer, filter::LevelFilter, layer::Context, prelude::*, registry::LookupSpan,
};

#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper", feature = "postgres"))]
use crate::support::{connect, eventually, start_patient};

/// Records each event as `name field field ..`.
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
async fn every_state_change_is_traced() {
    if !lock_lab::in_own_process("tracing::every_state_change_is_traced") {
        return;
    }
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

/// Records the level, the message and the fields of each event.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Words {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut words = event.metadata().level().to_string();
        let mut add = |field: &Field, value: &dyn Debug| {
            words.push_str(&format!(" {}={value:?}", field.name()));
        };
        if event.metadata().target() == "distlock" {
            event.record(&mut add);
            self.0.lock().unwrap().push(words);
        }
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_connect_warns_of_settings_that_weaken_locks() {
    if !lock_lab::in_own_process("tracing::a_connect_warns_of_settings_that_weaken_locks") {
        return;
    }
    let builder = lock_lab::Redis::builder().appendonly(false);
    let server = builder.arg("--maxmemory-policy").arg("allkeys-lru").start().await.unwrap();
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let locks = distlock::connect(server.url()).await.unwrap();
    let seen = words.0.lock().unwrap().clone();
    let cautions: Vec<_> = seen.iter().filter(|event| event.contains("message=caution")).collect();
    let told: Vec<_> = locks.guarantees().cautions.iter().collect();
    assert_eq!((cautions.len(), told.len()), (2, 2), "{seen:?}");
    for ((event, why), word) in cautions.iter().zip(told).zip(["maxmemory-policy", "appendonly"]) {
        let is_whole = event.starts_with("WARN ") && event.contains("store=\"redis\"");
        assert!(is_whole && why.contains(word) && event.contains(&format!("why={why}")), "{event}");
    }
    locks.close().await.unwrap();
}

/// Unless the loss was noticed, as by a holder that keeps the guard until it has the next one.
#[tokio::test(start_paused = true)]
async fn a_guard_that_is_still_there_after_a_loss_is_one_warning() {
    if !lock_lab::in_own_process("tracing::a_guard_that_is_still_there_after_a_loss_is_one_warning")
    {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let (store, ttl) = (MemoryStore::new(), Duration::from_secs(2));
    let locks = Locks::new(store.client());
    let lock = |name| locks.lock(name).unwrap().ttl(ttl);
    let told = || -> Vec<String> {
        let seen = words.0.lock().unwrap();
        seen.iter().filter(|event| event.contains("message=forgotten")).cloned().collect()
    };
    let held = lock("held").acquire().await.unwrap();
    let heeded = lock("heeded").max_hold(ttl * 3).acquire().await.unwrap();
    let dropped = lock("dropped").max_hold(ttl * 3).acquire().await.unwrap();
    std::mem::forget(lock("forgotten").max_hold(ttl * 3).acquire().await.unwrap());
    let set = locks.all(["x", "y", "z"]).unwrap().ttl(ttl).max_hold(ttl * 3);
    let set = set.acquire().await.unwrap();
    heeded.lost().await;
    set.lost().await;
    drop(dropped);
    tokio::time::sleep(ttl * 300).await;
    assert!(held.is_valid() && !heeded.is_valid());
    let seen = told();
    assert!(seen.len() == 1 && seen[0].starts_with("WARN"), "{seen:?}");
    assert!(seen[0].contains("lock=forgotten token=") && seen[0].contains("reason="), "{seen:?}");

    std::mem::forget(Arc::new(held));
    store.delete(&LockName::new("held").unwrap());
    tokio::time::sleep(ttl * 3).await;
    assert!(told().len() == 2 && told()[1].contains("lock=held"), "{:?}", told());

    // A close is no loss, and keeps quiet about none.
    std::mem::forget(lock("late").max_hold(ttl * 2).acquire().await.unwrap());
    std::mem::forget(lock("closed").acquire().await.unwrap());
    tokio::time::sleep(ttl * 5 / 2).await;
    assert_eq!(told().len(), 2);
    locks.close().await.unwrap();
    tokio::time::sleep(ttl * 3).await;
    assert!(told().len() == 3 && told()[2].contains("lock=late"), "{:?}", told());
}

/// What one task does side by side is no order, nor is a try, nor what readers or one owner do.
#[tokio::test(start_paused = true)]
async fn crossing_orders_of_locks_are_one_warning() {
    const SECOND: Duration = Duration::from_secs(1);
    if !lock_lab::in_own_process("tracing::crossing_orders_of_locks_are_one_warning") {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let locks = Locks::new(MemoryStore::new().client());
    let told = || -> Vec<String> {
        let seen = words.0.lock().unwrap();
        seen.iter().filter(|event| event.contains("message=orders_cross")).cloned().collect()
    };
    let lock = |name: &str| locks.lock(name).unwrap();
    let nested = |outer: &str, inner: &str| {
        let (outer, inner) = (lock(outer), lock(inner));
        let work = async move { drop(inner.acquire().await.unwrap()) };
        outer.run(|_| work)
    };
    let beside = |first: &str, later: &str| {
        let (first, later) = (lock(first), lock(later));
        async move {
            let waits = async {
                tokio::time::sleep(SECOND).await;
                drop(later.acquire().await.unwrap());
            };
            tokio::join!(first.run(|_| tokio::time::sleep(SECOND * 2)), waits).0.unwrap();
        }
    };
    beside("a", "b").await;
    beside("b", "a").await;
    let (outer, tried) = (lock("b"), lock("a"));
    outer.run(|_| async move { drop(tried.try_acquire().await.unwrap()) }).await.unwrap();
    for (outer, inner) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b")] {
        nested(outer, inner).await.unwrap();
    }
    let owner = Owner::new();
    for (outer, inner) in [("r", "s"), ("s", "r")] {
        let (outer, inner) = (locks.shared(outer).unwrap(), locks.shared(inner).unwrap());
        outer.run(|_| async move { drop(inner.acquire().await.unwrap()) }).await.unwrap();
    }
    for (outer, inner) in [("o", "p"), ("p", "o")] {
        let (outer, inner) = (lock(outer).owner(&owner), lock(inner).owner(&owner));
        outer.run(|_| async move { drop(inner.acquire().await.unwrap()) }).await.unwrap();
    }
    assert_eq!(told(), Vec::<String>::new());
    for _ in 0..2 {
        tokio::spawn(nested("b", "a")).await.unwrap().unwrap();
        let seen = told();
        assert!(seen.len() == 1 && seen[0].starts_with("WARN"), "{seen:?}");
        assert!(seen[0].contains("lock=a held=b"), "{seen:?}");
    }

    let set = locks.all(["f", "g"]).unwrap();
    let inner = lock("h");
    set.run(|_| async move { drop(inner.acquire().await.unwrap()) }).await.unwrap();
    assert_eq!(told().len(), 1);
    let inner = set.clone();
    lock("h").run(|_| async move { drop(inner.acquire().await.unwrap()) }).await.unwrap();
    let crossed = told();
    assert!(crossed.len() == 3, "{crossed:?}");
    for (event, name) in crossed[1..].iter().zip(["f", "g"]) {
        assert!(event.contains(&format!("lock={name} held=h")), "{crossed:?}");
    }
}

/// One warning when it begins, and the count when it ends.
#[tokio::test(start_paused = true)]
async fn an_outage_is_one_warning_and_its_count() {
    if !lock_lab::in_own_process("tracing::an_outage_is_one_warning_and_its_count") {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let client = MemoryStore::new().client();
    let (faults, locks) = (client.faults(), Locks::new(client));
    let lock = locks.lock("traced").unwrap().ttl(Duration::from_secs(60));
    let guard = lock.acquire().await.unwrap();
    for _ in 0..2 {
        // They are renewed while the store is silent, and lost.
        let mut short = Vec::new();
        for ttl in [3, 5] {
            let lock = locks.lock(format!("short-{ttl}")).unwrap().ttl(Duration::from_secs(ttl));
            short.push(lock.acquire().await.unwrap());
        }
        words.0.lock().unwrap().clear();
        faults.partition();
        tokio::time::sleep(Duration::from_secs(10)).await;
        faults.heal();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let seen = words.0.lock().unwrap().clone();
        let about = |word: &str| seen.iter().filter(|event| event.contains(word)).count();
        let warned =
            |event: &&String| event.starts_with("WARN") && event.contains("renewal_failed");
        assert_eq!(seen.iter().filter(warned).count(), 1, "{seen:?}");
        let count = format!("failures={}", about("message=renewal_failed"));
        let end = seen.iter().find(|event| event.contains("message=renewals_work"));
        assert!(end.is_some_and(|end| end.starts_with("INFO") && end.contains(&count)), "{seen:?}");
    }
    drop(guard);
}

/// One warning when it begins, with the address, and the count when it ends.
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper", feature = "postgres"))]
async fn a_servers_outage_is_one_warning_and_its_count(store: &str) {
    let test = format!("tracing::{store}::a_servers_outage_is_one_warning_and_its_count");
    if !lock_lab::in_own_process(&test) {
        return;
    }
    let words = Words::default();
    tracing_subscriber::registry().with(words.clone()).try_init().unwrap();
    let server = start_patient(store).await;
    let proxy = lock_lab::Proxy::start(server.addr()).await.unwrap();
    // Several rounds fail before the lock is lost.
    let locks = connect(&format!("{}?ttl=36s", server.url_via(&proxy))).await;
    let guard = locks.lock("traced").unwrap().acquire().await.unwrap();
    let of = |word: &str| -> Vec<String> {
        let seen = words.0.lock().unwrap();
        seen.iter().filter(|event| event.contains(word)).cloned().collect()
    };
    proxy.cut();
    // A client of ZooKeeper asks nothing while it has no connection.
    let rounds = if store == "zookeeper" { 1 } else { 2 };
    eventually("renewals fail", async || of("message=renewal_failed").len() >= rounds).await;
    proxy.heal();
    eventually("renewals work", async || !of("message=renewals_work").is_empty()).await;
    let (failed, works) = (of("message=renewal_failed"), &of("message=renewals_work")[0]);
    assert_eq!(failed.iter().filter(|event| event.starts_with("WARN")).count(), 1, "{failed:?}");
    assert!(failed.iter().all(|event| event.contains(&proxy.addr().to_string())), "{failed:?}");
    let all = format!("failures={}", failed.len());
    assert!(works.starts_with("INFO") && works.contains(&all), "{works}");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

on_every_server!(a_servers_outage_is_one_warning_and_its_count);
test_on!("postgres" postgres a_servers_outage_is_one_warning_and_its_count);

/// Of what the database itself warns about the statements that it gets.
#[cfg(feature = "postgres")]
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<String>>>);

#[cfg(feature = "postgres")]
impl<S: Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::postgres::notice" {
            let mut seen = Fields { name: String::new(), fields: Vec::new() };
            event.record(&mut seen);
            self.0.lock().unwrap().push(seen.name);
        }
    }
}

/// The first connect finds no tables, and makes them.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_first_connect_makes_the_database_warn_of_nothing() {
    if !lock_lab::in_own_process("tracing::a_first_connect_makes_the_database_warn_of_nothing") {
        return;
    }
    let notices = Notices::default();
    tracing_subscriber::registry().with(notices.clone()).try_init().unwrap();
    let server = lock_lab::Postgres::start().await.unwrap();
    let pooler = lock_lab::PgBouncer::before(&server.url()).line("pool_mode = transaction");
    let pooler = pooler.start().await.unwrap();
    let locks = connect(&format!("{}?pooler=transaction", pooler.url())).await;
    locks.lock("traced").unwrap().acquire().await.unwrap().release().await.unwrap();
    // A direct client looks for the tables, too.
    server
        .sql("DROP TABLE distlock_v1_entries, distlock_v1_slots, distlock_v1_marks")
        .await
        .unwrap();
    connect(&server.url()).await.close().await.unwrap();
    assert_eq!(*notices.0.lock().unwrap(), [""; 0]);
}

/// The database refuses one lock's renewal, and with it one of the round's two requests.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_round_that_is_confirmed_in_part_ends_no_outage() {
    if !lock_lab::in_own_process("tracing::a_round_that_is_confirmed_in_part_ends_no_outage") {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let server = lock_lab::Postgres::start().await.unwrap();
    let locks = distlock::connect(format!("{}?ttl=24s", server.url())).await.unwrap();
    let mut held = Vec::new();
    for n in 0..501 {
        held.push(locks.lock(format!("{n}")).unwrap().acquire().await.unwrap());
    }
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                  'BEGIN RAISE EXCEPTION ''not this one''; END'; \
                  CREATE TRIGGER refuse BEFORE UPDATE ON distlock_v1_entries FOR EACH ROW \
                  WHEN (OLD.name = '0') EXECUTE FUNCTION refuse()";
    server.sql(refuse).await.unwrap();
    let of = |word: &str| -> Vec<String> {
        let seen = words.0.lock().unwrap();
        seen.iter().filter(|event| event.contains(word)).cloned().collect()
    };
    eventually("renewals fail", async || of("message=renewal_failed").len() >= 2).await;
    server.sql("DROP TRIGGER refuse ON distlock_v1_entries").await.unwrap();
    eventually("renewals work", async || !of("message=renewals_work").is_empty()).await;
    let (failed, works) = (of("message=renewal_failed"), of("message=renewals_work"));
    assert_eq!(failed.iter().filter(|event| event.starts_with("WARN")).count(), 1, "{failed:?}");
    let all = format!("failures={}", failed.len());
    assert!(works.len() == 1 && works[0].contains(&all), "{works:?}");
    assert!(held.iter().all(|guard| guard.is_valid()));
}

/// Right behind another waiter of its client it knows its place when that one has left.
#[cfg(feature = "zookeeper")]
#[tokio::test]
async fn a_waiter_is_queued_once_its_place_is_known() {
    if !lock_lab::in_own_process("tracing::a_waiter_is_queued_once_its_place_is_known") {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let server = start_patient("zookeeper").await;
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let lock = others.lock("traced").unwrap();
    // After so many entries it is certain that nothing is between the two waiters.
    for _ in 0..20 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let held = lock.acquire().await.unwrap();
    let wait = || tokio::spawn(locks.lock("traced").unwrap().acquire());
    let queued = async |length: usize| {
        let is_there = async || locks.inspect("traced").await.unwrap().len() == length;
        eventually("it waits", is_there).await;
    };
    let first = wait();
    queued(2).await;
    let second = wait();
    queued(3).await;
    let places = || -> Vec<String> {
        let seen = words.0.lock().unwrap();
        seen.iter().filter(|event| event.contains("message=queued")).cloned().collect()
    };
    first.abort();
    eventually("the second one is next", async || places().len() == 2).await;
    assert!(places().iter().all(|event| event.contains("position=1")), "{:?}", places());
    held.release().await.unwrap();
    second.await.unwrap().unwrap().release().await.unwrap();
}

/// Records the name of each event's span.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Option<&'static str>>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        self.0.lock().unwrap().push(context.event_span(event).map(|span| span.name()));
    }
}

/// distlock's own span is off at this level, so only the caller's span names the event's owner.
#[tokio::test(start_paused = true)]
async fn an_event_is_in_the_callers_span_after_a_wait() {
    if !lock_lab::in_own_process("tracing::an_event_is_in_the_callers_span_after_a_wait") {
        return;
    }
    let spans = Spans::default();
    let _default =
        tracing_subscriber::registry().with(spans.clone()).with(LevelFilter::INFO).set_default();
    let locks = Locks::new(MemoryStore::new().client());
    let lock = locks.lock("traced").unwrap();
    let guard = lock.acquire().await.unwrap();
    let waiter = tokio::spawn(lock.acquire().instrument(tracing::info_span!("job")));
    tokio::time::sleep(Duration::from_secs(2)).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    guard.release().instrument(tracing::info_span!("end")).await.unwrap();
    let mut seen = spans.0.lock().unwrap().clone();
    seen.sort_unstable();
    // Granted and released here; granted there, and released.
    assert_eq!(seen, [None, None, Some("end"), Some("job")]);
}

/// One of two locks is gone, and one is renewed. Then both are gone, and none is.
#[cfg(feature = "redis")]
#[tokio::test]
async fn renewed_counts_what_the_store_has_confirmed() {
    if !lock_lab::in_own_process("tracing::renewed_counts_what_the_store_has_confirmed") {
        return;
    }
    let words = Words::default();
    let _default = tracing_subscriber::registry().with(words.clone()).set_default();
    let server = lock_lab::Redis::start().await.unwrap();
    let locks = distlock::connect(server.url()).await.unwrap();
    let ttl = Duration::from_secs(9);
    let lock = |name| locks.lock(name).unwrap().ttl(ttl);
    let (one, two) = (lock("one").acquire().await.unwrap(), lock("two").acquire().await.unwrap());
    server.command(&[b"DEL", b"one"]).await.unwrap();
    one.lost().await;
    server.command(&[b"DEL", b"two"]).await.unwrap();
    two.lost().await;
    // One more period.
    tokio::time::sleep(ttl / 3).await;
    let seen = words.0.lock().unwrap().clone();
    let mut held = 2;
    for event in &seen {
        held -= usize::from(event.contains("message=lost"));
        let renewed = event.contains("message=renewed");
        assert!(!renewed || event.contains(&format!("locks={held}")) && held > 0, "{seen:?}");
    }
    assert_eq!(held, 0);
}
