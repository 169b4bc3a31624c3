//! Each metric that `docs/metrics.md` lists moves, as a recorder sees it.
#![cfg(all(feature = "memory", feature = "metrics"))]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use distlock::{Error, LockName, Locks, LossReason, driver::DistributedLock, memory::MemoryStore};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::support::eventually;
#[cfg(feature = "redis")]
use crate::support::{connect, start};

const PAGE: &str = include_str!("../docs/metrics.md");
const RULES: &str = include_str!("../docs/metrics/alerts.yml");
const TTL: Duration = Duration::from_secs(6);

/// The sum of a metric's series with these labels, as Prometheus reads them.
fn sum(page: &PrometheusHandle, metric: &str, labels: &[&str]) -> f64 {
    let page = page.render();
    let is_of =
        |line: &&str| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let has_all = |line: &&str| labels.iter().all(|label| line.contains(label));
    let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    page.lines().filter(is_of).filter(has_all).map(|line| value(line).unwrap()).sum()
}

/// Each metric as `name type labels`: of the page's table, and of what was recorded.
fn documented() -> BTreeSet<String> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `distlock_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.replace(['`', ','], "")).collect();
        [1, 2, 3].map(|cell| cells[cell].trim().to_owned()).join(" ")
    })
    .collect()
}

fn recorded(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|of| format!("{of} {}", labels(page, of.split(' ').next().unwrap()))).collect()
}

/// The labels that a metric's series have, other than the bound of a bucket and the name.
fn labels(page: &str, metric: &str) -> String {
    let series = page.lines().filter_map(|line| line.strip_prefix(metric)?.split_once('{'));
    let labels = series.filter_map(|(_, rest)| rest.split_once('}')).map(|(labels, _)| labels);
    let names =
        labels.flat_map(|labels| labels.split(',')).filter_map(|label| label.split('=').next());
    let mut known = Vec::new();
    for name in names.filter(|name| !["le", "name"].contains(name)) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known.sort_unstable();
    known.join(" ")
}

#[tokio::test(start_paused = true)]
async fn each_metric_moves() {
    let recorder = PrometheusBuilder::new().set_buckets(&[1.0]).unwrap().build_recorder();
    let page = recorder.handle();
    // The test's runtime has this thread alone.
    let _here = metrics::set_default_local_recorder(&recorder);
    let sum = |metric, labels: &[&str]| sum(&page, metric, labels);
    let (exclusive, memory) = (r#"kind="exclusive""#, r#"store="memory""#);
    let (connected, disconnected) = (r#"state="connected""#, r#"state="disconnected""#);

    let store = MemoryStore::new();
    let client = store.client();
    let faults = client.faults();
    let driver: Arc<dyn DistributedLock> = Arc::new(client);
    let locks = Locks::of(driver.clone());
    // A client of the same connection.
    drop(Locks::of(driver));
    assert_eq!(sum("distlock_build_info", &[]), 1.0);
    assert_eq!(sum("distlock_connections", &[memory, connected]), 1.0);
    assert!(page.render().contains("distlock_renewals_failed_total{store=\"memory\"} 0"));

    let lock = locks.lock("a").unwrap().ttl(TTL);
    let guard = lock.acquire().await.unwrap();
    assert_eq!(sum("distlock_held", &[memory, exclusive]), 1.0);
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert_eq!(sum("distlock_contended_total", &[memory, exclusive]), 1.0);
    assert_eq!(sum("distlock_acquires_failed_total", &[]), 0.0, "a busy lock is no failure");
    let renewal = async || sum("distlock_last_renewal_timestamp_seconds", &[memory]) > 1e9;
    eventually("it is renewed", renewal).await;
    let waiter = tokio::spawn(lock.acquire());
    eventually("it waits", async || sum("distlock_waiting", &[memory, exclusive]) == 1.0).await;
    // A wait of a known length.
    tokio::time::sleep(Duration::from_secs(2)).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert_eq!(sum("distlock_waiting", &[]), 0.0);
    assert_eq!(sum("distlock_acquired_total", &[memory, exclusive]), 2.0);
    assert_eq!(sum("distlock_acquire_seconds_count", &[exclusive]), 2.0);
    assert!(sum("distlock_acquire_seconds_sum", &[exclusive]) >= 2.0);
    assert_eq!(sum("distlock_hold_seconds_count", &[exclusive]), 1.0);
    assert!(sum("distlock_hold_seconds_sum", &[exclusive]) > 0.0);

    let shared = r#"kind="shared""#;
    let vain = locks.shared("a").unwrap().wait(Duration::from_secs(1)).acquire().await;
    assert!(matches!(vain, Err(Error::WaitTimeout { .. })), "{vain:?}");
    assert_eq!(sum("distlock_timed_out_total", &[memory, shared]), 1.0);
    eventually("it has left", async || sum("distlock_waiting", &[]) == 0.0).await;
    assert_eq!(sum("distlock_contended_total", &[]), 1.0, "a wait that ends is no try");
    let grants = page.render();
    let mut acquired = grants.lines().filter(|line| line.starts_with("distlock_acquired_total{"));
    assert!(acquired.any(|line| line.contains(shared) && line.ends_with(" 0")), "{grants}");

    store.delete(&LockName::new("a").unwrap());
    guard.lost().await;
    assert_eq!(sum("distlock_lost_total", &[exclusive, r#"reason="entry_gone""#]), 1.0);
    assert_eq!(sum("distlock_held", &[]), 0.0);
    drop(guard);
    assert_eq!(sum("distlock_hold_seconds_count", &[]), 2.0, "it has ended once");

    let shared = locks.shared("b").unwrap().ttl(TTL).acquire().await.unwrap();
    let permits = locks.semaphore("c", 3).unwrap().ttl(TTL).acquire_many(2).await.unwrap();
    let leads = locks.election("d").unwrap().ttl(TTL).campaign("me").await.unwrap();
    for kind in [r#"kind="shared""#, r#"kind="permits""#, r#"kind="leader""#] {
        assert_eq!(sum("distlock_held", &[kind]), 1.0, "{kind}");
    }
    faults.deny();
    let vain = locks.shared("f").unwrap().acquire().await;
    assert!(matches!(vain, Err(Error::Denied { .. })), "{vain:?}");
    let denied = [memory, r#"kind="shared""#, r#"error="denied""#];
    assert_eq!(sum("distlock_acquires_failed_total", &denied), 1.0);
    faults.heal();
    faults.partition();
    assert_eq!(leads.lost().await, LossReason::Expired);
    assert!(sum("distlock_renewals_failed_total", &[memory]) > 0.0);
    assert!(sum("distlock_last_failed_renewal_timestamp_seconds", &[memory]) > 1e9);
    assert_eq!(sum("distlock_connections", &[disconnected]), 1.0);
    assert_eq!(sum("distlock_connections", &[connected]), 0.0);
    assert_eq!(sum("distlock_lost_total", &[r#"kind="leader""#, r#"reason="expired""#]), 1.0);
    let vain = locks.lock("f").unwrap().try_acquire().await;
    assert!(matches!(vain, Err(Error::Unavailable { .. })), "{vain:?}");
    let vain = locks.lock("f").unwrap().wait(Duration::ZERO).acquire().await;
    assert!(matches!(vain, Err(Error::Unavailable { .. })), "{vain:?}");
    let vain = locks.all(["f", "g"]).unwrap().try_acquire().await;
    assert!(matches!(vain, Err(Error::Unavailable { .. })), "{vain:?}");
    let unavailable = [memory, exclusive, r#"error="unavailable""#];
    assert_eq!(sum("distlock_acquires_failed_total", &unavailable), 3.0);
    let second = Duration::from_secs(1);
    let tried = locks.lock("f").unwrap().try_acquire();
    assert!(tokio::time::timeout(second, tried).await.is_err());
    let tried = locks.all(["f", "g"]).unwrap().wait(Duration::ZERO).acquire();
    assert!(tokio::time::timeout(second, tried).await.is_err());
    let all = async || sum("distlock_acquires_failed_total", &unavailable) == 5.0;
    eventually("the callers that have left count", all).await;
    faults.heal();
    drop((shared, permits, leads));

    // A name is a label only where the program asks for it.
    assert!(!page.render().contains("name="));
    let named = locks.lock("e").unwrap().name_in_metrics().acquire().await.unwrap();
    assert_eq!(sum("distlock_held", &[exclusive, r#"name="e""#]), 1.0);
    assert_eq!(sum("distlock_connections", &[connected]), 1.0);
    named.release().await.unwrap();
    assert_eq!(sum("distlock_held", &[]), 0.0);
    let lost = sum("distlock_lost_total", &[]);
    let guard = lock.acquire().await.unwrap();
    locks.close().await.unwrap();
    assert_eq!(sum("distlock_connections", &[]), 0.0);
    assert_eq!(guard.lost().await, LossReason::Closed);
    assert_eq!(sum("distlock_lost_total", &[]), lost, "a close is a release");

    let page = page.render();
    assert_eq!(recorded(&page), documented());
    let described = |metric: &&str| page.contains(&format!("# HELP {metric} "));
    let metrics = recorded(&page);
    assert!(
        metrics.iter().filter_map(|of| of.split(' ').next()).all(|of| described(&of)),
        "{page}"
    );
}

/// A set that is taken by one request counts each of its locks; one that is busy counts once.
#[tokio::test(start_paused = true)]
async fn a_set_counts_its_locks() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let _here = metrics::set_default_local_recorder(&recorder);
    let locks = Locks::new(MemoryStore::new().client());
    let set = locks.all(["a", "b"]).unwrap();
    let held = set.try_acquire().await.unwrap().unwrap();
    assert_eq!(sum(&page, "distlock_acquired_total", &[]), 2.0);
    assert_eq!(sum(&page, "distlock_held", &[]), 2.0);
    assert!(set.try_acquire().await.unwrap().is_none());
    assert_eq!(sum(&page, "distlock_contended_total", &[]), 1.0);
    assert!(set.shared().unwrap().try_acquire().await.unwrap().is_none());
    assert_eq!(sum(&page, "distlock_contended_total", &[r#"kind="shared""#]), 1.0);
    let zero = |error| format!("error=\"{error}\"}} 0");
    for error in ["denied", "misconfigured", "rejected", "unavailable"] {
        assert!(page.render().contains(&zero(error)), "{}", page.render());
    }
    held.release().await.unwrap();
    assert_eq!(sum(&page, "distlock_held", &[]), 0.0);
    drop(locks);
    let gone = async || sum(&page, "distlock_connections", &[]) == 0.0;
    eventually("the connection is gone", gone).await;
}

/// The rules alarm on what is recorded: metrics, labels, and the values of labels.
#[test]
fn the_rules_name_documented_metrics_and_the_page_names_the_rules() {
    let documented = documented();
    let mut named = 0;
    for word in RULES.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if word.starts_with("distlock_") {
            assert!(documented.iter().any(|of| of.split(' ').next() == Some(word)), "{word}");
            named += 1;
        }
    }
    assert!(named >= 3, "{RULES}");
    let exprs = RULES.lines().filter(|line| !line.contains("summary:"));
    let matchers = exprs.clone().flat_map(|line| line.split('{').skip(1));
    let matched = matchers.filter_map(|of| of.split_once(['=', '!'])).map(|(label, _)| label);
    let values = exprs.flat_map(|line| line.split('"').skip(1).step_by(2));
    let lists = ["by (", "on ("].into_iter().flat_map(|of| RULES.split(of).skip(1));
    let listed = lists.filter_map(|rest| rest.split(')').next()).flat_map(|all| all.split(", "));
    let words = matched.chain(values.flat_map(|all| all.split('|'))).chain(listed);
    for word in words.filter(|word| !["instance", "job"].contains(word)) {
        assert!(PAGE.contains(&format!("`{word}`")), "{word}");
    }
    let alerts = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    assert_eq!(alerts.clone().count(), 3);
    for alert in alerts {
        assert!(PAGE.contains(&format!("## {alert}\n")), "{alert}");
    }
}

#[cfg(feature = "redis")]
async fn an_outage_is_measured(store: &str) {
    if !lock_lab::in_own_process(&format!("metrics::{store}::an_outage_is_measured")) {
        return;
    }
    // For all threads.
    let page = PrometheusBuilder::new().install_recorder().unwrap();
    let sum = |metric, labels: &[&str]| sum(&page, metric, labels);
    let label = format!("store=\"{store}\"");
    let of_store = label.as_str();
    let server = start(store).await;
    let locks = connect(&format!("{}?ttl=6s", server.url())).await;
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    assert_eq!(sum("distlock_held", &[of_store]), 1.0);
    assert_eq!(sum("distlock_acquire_seconds_count", &[of_store]), 1.0);
    server.stop();
    assert_eq!(guard.lost().await, LossReason::Expired);
    // It is counted after the wake.
    let expired = [of_store, r#"reason="expired""#];
    eventually("it counts", async || sum("distlock_lost_total", &expired) == 1.0).await;
    let fails = async || sum("distlock_renewals_failed_total", &[of_store]) > 0.0;
    eventually("renewals fail", fails).await;
    let broken = [of_store, r#"state="disconnected""#];
    eventually("it is disconnected", async || sum("distlock_connections", &broken) == 1.0).await;
    server.resume();
    let works = async || {
        // The result does not matter: the state comes from its answer.
        let _ = locks.ping().await;
        sum("distlock_connections", &[of_store, r#"state="connected""#]) == 1.0
    };
    eventually("it is connected again", works).await;
    drop(guard);
    locks.lock("b").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert!(sum("distlock_hold_seconds_sum", &[of_store]) > 0.0);
    locks.close().await.unwrap();
    assert_eq!(sum("distlock_connections", &[]), 0.0);
    assert_eq!(sum("distlock_held", &[]), 0.0);
}

test_on!("redis" redis an_outage_is_measured);
