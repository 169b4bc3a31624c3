//! Several hosts of one deployment, of which one takes writes.

use std::time::Duration;

use lock_core::{Clock, Error, LossReason, Overlap};
use lock_lab::{Postgres, Server, Shift};
use lock_sql::Dialect;

use crate::servers::{Database, connect, eventually, locks, logins, on_both, read_only::Address};

on_both!(
    the_host_that_takes_writes_is_found_and_followed,
    a_host_with_another_login_does_not_end_a_wait,
);

const TTL: Duration = Duration::from_secs(60);

/// The URL of several servers with the login of `login`.
pub fn url(login: &str, servers: &[&Server]) -> String {
    let (head, rest) = login.rsplit_once('@').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    let hosts: Vec<_> = servers.iter().map(|server| server.addr().to_string()).collect();
    format!("{head}@{}/{database}?failover=managed&connect_timeout=2s", hosts.join(","))
}

async fn refused(url: &str, why: &str) {
    let error = connect(url).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(why), "{error}");
}

async fn the_host_that_takes_writes_is_found_and_followed(dialect: Dialect) {
    let one = Database::start_for_everyone(dialect).await;
    let other = Database::start_for_everyone(dialect).await;
    let hosts = url(&one.url_as("plain:plain"), &[&one, &other]);
    refused(&hosts, "both take writes").await;
    one.set_read_only(true).await;
    let found = locks(&hosts).await;
    let held = found.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_eq!((one.entries().await, other.entries().await), (0, 1));
    // The roles change. The lock was not replicated.
    other.set_read_only(true).await;
    refused(&hosts, "no host takes writes").await;
    let lost = held.lost();
    one.set_read_only(false).await;
    let next = found.lock("b").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_eq!(one.entries().await, 1);
    assert_eq!(lost.await, LossReason::Failover);
    next.release().await.unwrap();
}

/// The other host refuses the login for good, and the primary is away for a while.
async fn a_host_with_another_login_does_not_end_a_wait(dialect: Dialect) {
    let primary = Database::start_for_everyone(dialect).await;
    let stranger = Database::start(dialect).await;
    let found = locks(&url(&primary.url_as("plain:plain"), &[&stranger, &primary])).await;
    primary.kill();
    let before = logins::refused(&stranger);
    let attempt = tokio::spawn(found.lock("a").unwrap().acquire());
    eventually("it asks the other host", async || logins::refused(&stranger) > before).await;
    primary.restart().await.unwrap();
    attempt.await.unwrap().unwrap().release().await.unwrap();
}

/// Failover of a database whose standby lags: the lock is lost, and its holder is told. A former
/// primary that comes back is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_the_standby_lacks_is_lost_and_told() {
    let primary = Postgres::start().await.unwrap();
    locks(&primary.url()).await;
    let standby = primary.lagging_standby().await.unwrap();
    let hosts = url(&primary.url(), &[&standby, &primary]);
    let first = locks(&hosts).await;
    let guarantees = first.driver().guarantees().clone();
    assert!(!guarantees.survives.failover && guarantees.cautions.len() >= 2, "{guarantees:?}");
    let held = first.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let lost = held.lost();
    primary.kill();
    standby.promote().await.unwrap();
    let start = Clock::Boot.now();
    let second = locks(&hosts).await;
    let next = second.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    // Long before its TTL is over.
    assert_eq!(lost.await, LossReason::Failover);
    let took = Clock::Boot.now().since(start);
    assert!(took < TTL / 2, "{took:?}");
    let other = first.lock("b").unwrap().ttl(TTL).acquire().await.unwrap();

    primary.restart().await.unwrap();
    refused(&hosts, "both take writes").await;
    other.renew().await.unwrap();
    other.release().await.unwrap();
    standby.kill();
    // Its requests last a third of that: a loaded machine asks both hosts within it.
    let ttl = Duration::from_secs(6);
    let error = first.lock("c").unwrap().ttl(ttl).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("former primary"), "{error}");
    drop(next);
}

/// One name leads to the standby that has taken over, and that lacks the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_behind_one_name_is_told_at_once() {
    let primary = Postgres::start().await.unwrap();
    locks(&primary.url()).await;
    let standby = primary.lagging_standby().await.unwrap();
    let name = Address::of(primary.addr()).await;
    let client = locks(&name.url(&primary.url(), primary.addr())).await;
    let held = client.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let lost = held.lost();
    standby.promote().await.unwrap();
    name.lead_to(standby.addr());
    primary.kill();
    let start = Clock::Boot.now();
    let next = client.lock("b").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_eq!(lost.await, LossReason::Failover);
    // Before a renewal is due.
    let took = Clock::Boot.now().since(start);
    assert!(took < TTL / 3, "{took:?}");
    next.release().await.unwrap();
}

/// The standby has the lock, which nobody renews, and its clock is past the lock's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_clock_that_is_ahead_ends_locks_early() {
    let primary = Postgres::start().await.unwrap();
    let first = locks(&primary.url()).await;
    assert!(first.guarantees().overlaps.contains(&Overlap::ClockJump));
    let start = Clock::Boot.now();
    let held = first.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    let ticket = held.detach().await.unwrap();
    let standby = primary.lagging_standby().await.unwrap();
    primary.kill();
    standby.move_clocks(Shift::ahead(TTL * 2), Shift::NONE).unwrap();
    standby.promote().await.unwrap();
    let second = locks(&url(&primary.url(), &[&standby, &primary])).await;
    let next = second.lock("a").unwrap().ttl(TTL).try_acquire().await.unwrap();
    assert!(next.is_some(), "the clocks agree");
    let took = Clock::Boot.now().since(start);
    assert!(took < TTL, "{took:?}");
    let refused = second.adopt(&ticket).await.unwrap_err();
    assert!(refused.is_lost(), "{refused:?}");
}
