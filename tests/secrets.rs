//! No event of any crate shows a password, whatever the level: while it works, and when it is wrong.
//!
//! Each test has a process of its own: a first event of another test at the wrong moment can turn
//! that event off for all.
#![cfg(all(
    feature = "redis",
    feature = "etcd",
    feature = "zookeeper",
    feature = "postgres",
    feature = "mysql"
))]

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use distlock::{Error, StoreUrl};
use lock_lab::{Etcd, MariaDb, Postgres, Redis, ZooKeeper};
use tracing::{
    Event, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

const RIGHT: &str = "r1ght-p4ss";
const WRONG: &str = "wr0ng-p4ss";

/// All that is traced, of spans and events alike.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<String>>);

impl Said {
    fn add(&self, record: impl FnOnce(&mut dyn FnMut(&Field, &dyn Debug))) {
        let mut said = self.0.lock().unwrap();
        record(&mut |field, value| write!(said, "{}={value:?} ", field.name()).unwrap());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Said {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.add(|mut add| attributes.record(&mut add));
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.add(|mut add| values.record(&mut add));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.add(|mut add| event.record(&mut add));
    }
}

/// Locks with the right password, fails with a wrong one, and returns all that was traced.
async fn said_by_clients_of(url: &str, wrong: &str) -> String {
    let said = Said::default();
    let _default = tracing_subscriber::registry().with(said.clone()).set_default();
    let locks = distlock::connect(url).await.unwrap();
    let guard = locks.lock("orders").unwrap().acquire().await.unwrap();
    guard.renew().await.unwrap();
    guard.release().await.unwrap();
    locks.close().await.unwrap();
    let refused: Result<(), Error> = async {
        let locks = distlock::connect(wrong).await?;
        let lock = locks.lock("orders")?.wait(Duration::from_secs(1));
        lock.acquire().await?.release().await
    }
    .await;
    let refused = refused.unwrap_err();
    let shown = format!("{refused} {refused:?}");
    let traced = said.0.lock().unwrap().clone();
    format!("{traced} {shown}")
}

async fn shows_no_password(url: &str) {
    let (login, host) = url.split_once('@').unwrap();
    let (user, escaped) = login.rsplit_once(':').unwrap();
    let parsed = StoreUrl::parse(url).unwrap();
    let password = parsed.password().unwrap();
    let said = said_by_clients_of(url, &format!("{user}:{WRONG}@{host}")).await;
    assert!(said.contains("orders"), "nothing is traced");
    for secret in [password, escaped, WRONG] {
        let at = said.find(secret);
        let around = at.map(|at| said[at.saturating_sub(200)..].chars().take(300).collect());
        assert_eq!(around, None::<String>);
    }
}

#[tokio::test]
async fn redis_shows_no_password() {
    if !lock_lab::in_own_process("secrets::redis_shows_no_password") {
        return;
    }
    let server = Redis::builder().appendonly(false).user("app", RIGHT).start().await.unwrap();
    shows_no_password(&server.url()).await;
}

#[tokio::test]
async fn etcd_shows_no_password() {
    if !lock_lab::in_own_process("secrets::etcd_shows_no_password") {
        return;
    }
    let server = Etcd::builder().in_memory().arg("--bcrypt-cost=4").start().await.unwrap();
    server.demand_logins(&[("me", RIGHT, "locks/")]).await.unwrap();
    shows_no_password(&format!("etcd://me:{RIGHT}@{}?prefix=locks/", server.addr())).await;
}

#[tokio::test]
async fn zookeeper_shows_no_password() {
    if !lock_lab::in_own_process("secrets::zookeeper_shows_no_password") {
        return;
    }
    let server = ZooKeeper::builder().in_memory().login("me", RIGHT).start().await.unwrap();
    let url = format!("zookeeper://me:{RIGHT}@{}?acl=creator", server.addr());
    shows_no_password(&url).await;
}

#[tokio::test]
async fn postgres_shows_no_password() {
    if !lock_lab::in_own_process("secrets::postgres_shows_no_password") {
        return;
    }
    shows_no_password(&Postgres::start().await.unwrap().url()).await;
}

#[tokio::test]
async fn mysql_shows_no_password() {
    if !lock_lab::in_own_process("secrets::mysql_shows_no_password") {
        return;
    }
    shows_no_password(&MariaDb::start().await.unwrap().url()).await;
}
