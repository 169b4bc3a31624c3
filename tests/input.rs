//! Bad input gives a clear error in under 5 s, never a hang or a panic.

#![cfg_attr(
    not(any(feature = "etcd", feature = "redis", feature = "zookeeper")),
    allow(dead_code, reason = "what every server's driver is asked is compiled in any case")
)]

use std::{error::Error as _, time::Duration};

use distlock::{Error, Requirement};
use lock_core::Clock;

use crate::support::{self, bounded::bounded};

/// Connects, which must fail in time. Returns the error and its text.
async fn refused(url: &str) -> (Error, String) {
    let connecting = distlock::connect(url).into_future();
    match bounded(url, Duration::from_secs(5), connecting).await {
        Ok(locks) => panic!("{url}: connected to {locks:?}"),
        Err(error) => {
            let shown = error.to_string();
            (error, shown)
        }
    }
}

#[tokio::test]
async fn an_unknown_scheme_names_the_known_ones() {
    let (error, shown) = refused("consul://127.0.0.1").await;
    assert!(matches!(error, Error::InvalidUrl { .. }));
    assert!(shown.contains("consul"), "{shown}");
    for store in distlock::STORES {
        assert!(shown.contains(store.scheme), "{shown}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_url_is_invalid() {
    for url in ["", "nonsense", "127.0.0.1:6379", "://", "redis//h"] {
        let (error, shown) = refused(url).await;
        assert!(matches!(error, Error::InvalidUrl { .. }), "{url}: {shown}");
    }
}

#[tokio::test]
#[cfg(not(feature = "etcd"))]
async fn a_missing_feature_is_named() {
    let (error, shown) = refused("etcd://127.0.0.1:2379").await;
    assert!(matches!(error, Error::InvalidUrl { .. }));
    assert!(shown.contains("--features etcd"), "{shown}");
}

#[tokio::test]
async fn bad_names_and_ttls_are_named() {
    let locks = support::connect("memory:input").await;
    for name in ["", &"x".repeat(513)] {
        let shown = locks.lock(name).unwrap_err().to_string();
        assert!(shown.contains("empty") || shown.contains("512"), "{shown}");
    }
    let shown = locks.all([""; 0]).unwrap_err().to_string();
    assert_eq!(shown, "no lock name: a set needs at least one name");
    let error = locks.lock("a").unwrap().ttl(Duration::from_millis(1)).acquire().await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("ttl") && shown.contains("1ms") && shown.contains("200ms"), "{shown}");
    let error = locks.lock("a").unwrap().max_hold(Duration::ZERO).acquire().await.unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
}

/// A store may cut off a client that sends too much, and each observer of it.
#[tokio::test]
async fn texts_that_are_too_long_are_refused_before_they_are_sent() {
    let locks = support::connect("memory:long").await;
    let [holder, value] = [LONGEST_HOLDER, LONGEST_VALUE].map(|most| "x".repeat(most + 1));
    let lock = locks.lock("a").unwrap().holder(&holder).acquire().await.map(drop);
    let campaign = locks.election("e").unwrap().campaign(&value).await.map(drop);
    let mut leading = locks.election("e").unwrap().campaign("me").await.unwrap();
    let proclaimed = leading.proclaim(&value).await;
    for (refused, option, text) in
        [(lock, "holder", &holder), (campaign, "value", &value), (proclaimed, "value", &value)]
    {
        let shown = refused.unwrap_err().to_string();
        assert!(shown.contains(option) && shown.contains(&text.len().to_string()), "{shown}");
        assert!(shown.len() < 100, "{shown}");
    }
    assert!(leading.is_valid());
}

/// The longest texts: each store takes them.
const LONGEST_HOLDER: usize = 64 * 1024;
const LONGEST_VALUE: usize = 512 * 1024;

async fn the_longest_texts(store: &str) {
    let server = support::start(store).await;
    let (locks, other) =
        (support::connect(&server.url()).await, support::connect(&server.url()).await);
    // Each byte becomes six in JSON.
    let holder = "\u{1}".repeat(LONGEST_HOLDER);
    let [first, second] = ["f", "s"].map(|letter| letter.repeat(LONGEST_VALUE));
    let election = locks.election("e").unwrap().holder(&holder);
    let mut leading = election.campaign(&first).await.unwrap();
    let mut observer = other.election("e").unwrap().observe().await.unwrap();
    for value in [first, second] {
        leading.proclaim(&value).await.unwrap();
        loop {
            let seen = observer.next().await.unwrap().unwrap().unwrap();
            assert_eq!(seen.holder.description.as_deref(), Some(holder.as_str()));
            if seen.value == value.as_bytes() {
                break;
            }
        }
    }
    let lock = locks.lock("a").unwrap().holder(&holder).acquire().await.unwrap();
    let seen = &other.inspect("a").await.unwrap()[0];
    assert_eq!(seen.holder.description.as_deref(), Some(holder.as_str()));
    lock.release().await.unwrap();
}

#[tokio::test]
async fn an_unknown_option_is_refused() {
    let (error, shown) = refused("memory:?colour=red").await;
    assert!(matches!(error, Error::InvalidOption { .. }));
    // Its value may be a secret under a name that is not known.
    assert!(shown.contains("colour") && !shown.contains("red"), "{shown}");
}

#[tokio::test]
#[cfg(feature = "redis")]
async fn a_store_that_promises_less_is_refused_with_the_missing_promises() {
    let server = support::start("redis").await;
    let connecting = distlock::connect(server.url())
        .require(Requirement::StrictFencing)
        .require(Requirement::SurvivesFailover)
        .require(Requirement::Fifo);
    match connecting.await {
        Err(Error::Unmet { missing, .. }) => {
            assert_eq!(missing, [Requirement::StrictFencing, Requirement::SurvivesFailover]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_that_promises_enough_is_taken() {
    let connecting = distlock::connect("memory:").require(Requirement::StrictFencing);
    connecting.require(Requirement::Fifo).await.unwrap();
}

#[tokio::test]
#[cfg(feature = "redis")]
async fn a_wrong_password_is_denied_and_not_shown() {
    let server = lock_lab::Redis::builder().password("right").start().await.unwrap();
    let wrong = format!("redis://:hunter2@{}", server.addr());
    let (error, shown) = refused(&wrong).await;
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(!shown.contains("hunter2") && !format!("{error:?}").contains("hunter2"), "{error:?}");
    support::connect(&format!("redis://:right@{}", server.addr())).await;
}

/// The port is right, and the scheme is another store's.
#[tokio::test]
#[cfg(all(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
async fn another_server_behind_the_port_is_named() {
    for (there, name, others) in [
        ("redis", "Redis", &["etcd", "zookeeper", "postgres"] as &[_]),
        ("etcd", "etcd", &["redis"]),
        ("zookeeper", "ZooKeeper", &["redis"]),
        ("postgres", "PostgreSQL", &["redis"]),
        ("mysql", "MySQL or MariaDB", &["redis"]),
    ] {
        let server = support::start(there).await;
        for other in others {
            let url = url(other, server.addr());
            // A busy server answers later than a try takes.
            support::eventually(&format!("{other}: {name} is named"), async || {
                let (_, shown) = refused(&url).await;
                shown.ends_with(&format!("; this answers like {name}"))
            })
            .await;
        }
    }
}

/// A runtime that has nothing to do for a moment skips the time until its next limit.
async fn a_paused_clock_is_the_reason(store: &str) {
    let server = support::start(store).await;
    let connected = || {
        let url = server.url();
        let connecting = move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().start_paused(true).build().unwrap();
            runtime.block_on(async { distlock::connect(url).await.map(drop) })
        };
        tokio::task::spawn_blocking(connecting)
    };
    // An answer may be there at once.
    for _ in 0..100 {
        let began = Clock::Boot.now();
        let Err(refused) = connected().await.unwrap() else { continue };
        // Where the machine stood still as long as the shortest limit, no time was skipped.
        if Clock::Boot.now().since(began) >= Duration::from_secs(1) {
            continue;
        }
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
        assert!(refused.to_string().contains("clock of tokio is paused"), "{refused}");
        return;
    }
    panic!("a paused clock refuses no connect");
}

/// The URL of a server that need not exist.
fn url(store: &str, address: impl std::fmt::Display) -> String {
    let database = if store == "mysql" { "/locks" } else { "" };
    format!("{store}://{address}{database}")
}

async fn unknown_option(store: &str) {
    let (error, shown) = refused(&(url(store, "127.0.0.1:1") + "?colour=red")).await;
    assert!(matches!(error, Error::InvalidOption { .. }), "{error:?}");
    assert!(shown.contains("colour") && shown.contains("ttl"), "{shown}");
}

async fn host_without_slashes(store: &str) {
    for host in ["127.0.0.1", "localhost", "h:1", "10.0.0.1,10.0.0.2", "dbhost", "dbhost/shop"] {
        let (error, shown) = refused(&format!("{store}:{host}")).await;
        assert!(matches!(error, Error::InvalidUrl { .. }), "{host}: {error:?}");
        assert!(shown.contains(&format!("write {store}://HOST")), "{shown}");
    }
}

#[tokio::test]
#[cfg(feature = "sqlite")]
async fn a_file_may_have_two_slashes_before_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let locks = support::connect(&format!("sqlite://{}", file.display())).await;
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    let same = support::connect(&format!("sqlite:{}", file.display())).await;
    assert!(same.lock("a").unwrap().try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

async fn bad_default_ttl(store: &str) {
    for ttl in ["soon", "-1s", "15", "0s"] {
        let (error, shown) = refused(&(url(store, "127.0.0.1:1") + "?ttl=" + ttl)).await;
        assert!(matches!(error, Error::InvalidOption { .. }), "{ttl}: {error:?}");
        assert!(shown.contains("ttl"), "{shown}");
    }
}

async fn refused_connection(store: &str) {
    // The port was free a moment ago, so no process listens on it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (error, shown) = refused(&url(store, format_args!("127.0.0.1:{port}"))).await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(shown.contains(store), "{shown}");
    names_once(&error, &format!("127.0.0.1:{port}"));
    assert!(!shown.contains("taken effect"), "nothing was asked of it: {shown}");
}

/// The error's text is complete, and printing the sources as well repeats nothing.
fn names_once(error: &Error, address: &str) {
    let mut chain = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        chain.push(error.to_string());
        next = error.source();
    }
    let shown = chain.join(": ");
    assert_eq!(shown.matches(address).count(), 1, "{shown}");
    for said in ["refused", "no answer", "did not answer"] {
        assert!(shown.matches(said).count() <= 1, "{shown}");
    }
}

async fn a_killed_server_is_unavailable(store: &str) {
    let server = support::start(store).await;
    let locks = support::connect(&server.url()).await;
    let (address, shown) = (server.addr().to_string(), format!("{locks:?}"));
    assert!(shown.contains(&address) && shown.len() < 100, "no line for people: {shown}");
    server.kill();
    let error = locks.lock("a").unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    names_once(&error, &address);
}

async fn silent_server(store: &str) {
    // Accepts connections and never sends anything.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let (error, _) = refused(&url(store, address)).await;
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    names_once(&error, &address.to_string());
}

on_every_server!(
    the_longest_texts,
    unknown_option,
    host_without_slashes,
    bad_default_ttl,
    refused_connection,
    silent_server,
    a_killed_server_is_unavailable,
    a_paused_clock_is_the_reason
);
test_on!("postgres" postgres the_longest_texts host_without_slashes
    unknown_option bad_default_ttl refused_connection silent_server a_killed_server_is_unavailable
    a_paused_clock_is_the_reason);
test_on!("mysql" mysql the_longest_texts host_without_slashes
    unknown_option bad_default_ttl refused_connection silent_server a_killed_server_is_unavailable
    a_paused_clock_is_the_reason);

#[tokio::test]
async fn an_explanation_ends_with_the_limit_of_the_try() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let limit = Duration::from_secs(2);
    let connecting = distlock::connect(&url).timeout(limit).into_future();
    bounded("a connect", limit * 2, connecting).await.unwrap_err();
}
