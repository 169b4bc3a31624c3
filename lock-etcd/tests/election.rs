//! Elections on etcd, and the news for observers.

use std::time::Duration;

use lock_core::{DistributedLock, Error, Kind, Leader, Locks, Observer, Request};
use lock_etcd::client::{Client, PutOptions};

use crate::support::{self, *};

async fn next(observer: &mut Observer) -> Option<Leader> {
    soon(observer.next()).await.expect("it goes on").unwrap()
}

/// Returns the observer's next value; empty if there is no leader.
async fn value(observer: &mut Observer) -> String {
    let leader = next(observer).await;
    leader.map(|leader| String::from_utf8(leader.value).unwrap()).unwrap_or_default()
}

async fn observer(locks: &Locks, name: &str) -> Observer {
    locks.election(name).unwrap().observe().await.unwrap()
}

async fn until_nothing_is_watched(etcd: &lock_lab::Etcd) {
    until("nothing is watched", || async {
        let now = etcd.counters().await.unwrap();
        now.get("watchers") == 0 && now.get("watch_streams") == 0
    })
    .await;
}

#[tokio::test]
async fn the_value_is_raw_and_the_note_stands_beside_the_queue() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?prefix=ns/", etcd.url())).await;
    let mut go = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let election = locks.election("job").unwrap().holder("me");
    let mut leading = election.campaign(b"\xff raw").await.unwrap();
    let (mut keys, lease) = (keys(&etcd).await, etcd.leases().await.unwrap()[0]);
    keys.sort();
    assert_eq!(keys, [format!("ns/job#{lease:x}.0.v"), format!("ns/job/{lease:x}.0.v")]);
    let seen = go.get(&*keys[1], None).await.unwrap();
    assert_eq!(seen.kvs()[0].value(), b"\xff raw");
    leading.proclaim("").await.unwrap();
    let seen = go.get(&*keys[1], None).await.unwrap();
    assert_eq!((seen.kvs()[0].value(), seen.kvs()[0].lease()), (&b""[..], lease));
    assert_eq!(seen.kvs()[0].create_revision().unsigned_abs(), leading.token().value());
    let queue = locks.inspect("job").await.unwrap();
    assert_eq!(queue.len(), 1);
    assert_eq!(queue[0].holder.description.as_deref(), Some("me"));
    // Observers get events, and a read of etcd's history would be one more request.
    let seen = queue[0].holder.clone().granted(None);
    assert_eq!(election.leader().await.unwrap().unwrap().holder, seen);
    assert_eq!(locks.names("").await.unwrap(), [name("job")]);
    leading.resign().await.unwrap();
    until_clean(&etcd).await;
}

#[tokio::test]
async fn only_the_own_entry_is_given_a_value() {
    let etcd = etcd().await;
    let driver = driver(&etcd.url()).await;
    let plain = acquire(&driver, Request::new(name("job"), Duration::from_secs(60))).await;
    let error = plain.publish(b"y").await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn a_candidate_that_is_downgraded_leaves_its_note_nowhere() {
    let etcd = etcd().await;
    let driver = driver(&etcd.url()).await;
    let mut request = Request::new(name("job"), Duration::from_secs(60));
    request.value = Some(b"x".as_slice().into());
    for upgraded in [false, true] {
        let lease = acquire(&driver, request.clone()).await;
        lease.downgrade().await.unwrap();
        let queue = driver.inspect(&name("job")).await.unwrap();
        assert_eq!((queue.len(), queue[0].kind), (1, Kind::Shared));
        if upgraded {
            assert!(lease.try_upgrade().await.unwrap());
            assert_eq!(keys(&etcd).await.len(), 1);
        }
        lease.release().await.unwrap();
        until_clean(&etcd).await;
    }
}

#[tokio::test]
async fn a_value_from_an_operator_is_seen_and_replaced_by_the_next() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let election = locks.election("job").unwrap();
    let mut leading = election.campaign("ours").await.unwrap();
    let mut observer = observer(&locks, "job").await;
    assert_eq!(value(&mut observer).await, "ours");
    let keys = etcd.keys().await.unwrap();
    let key = keys.iter().find(|key| key.starts_with(b"job/")).unwrap();
    etcd.put(key, b"theirs").await.unwrap();
    assert_eq!(value(&mut observer).await, "theirs");
    leading.proclaim("again").await.unwrap();
    assert_eq!(value(&mut observer).await, "again");
}

#[tokio::test]
async fn a_shared_lock_does_not_lead_and_a_foreign_entry_does() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut observer = observer(&locks, "job").await;
    assert_eq!(value(&mut observer).await, "");
    let reader = locks.shared("job").unwrap().acquire().await.unwrap();
    let mut go = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let lease = go.lease_grant(60, None).await.unwrap().id();
    let key = format!("job/{lease:x}");
    go.put(&*key, "go's", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    let election = locks.election("job").unwrap();
    assert!(election.leader().await.unwrap().is_none());
    reader.release().await.unwrap();
    let leader = next(&mut observer).await.unwrap();
    assert_eq!((leader.value.as_slice(), leader.holder.description), (&b"go's"[..], None));
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    go.lease_revoke(lease).await.unwrap();
    let mut guard = soon(waiting).await.unwrap().unwrap();
    let leader = next(&mut observer).await.unwrap();
    assert_eq!((leader.token, leader.value), (guard.token(), Vec::new()));
    assert!(leader.holder.description.is_some());
    guard.downgrade().await.unwrap();
    assert!(next(&mut observer).await.is_none());
    assert!(guard.try_upgrade().await.unwrap());
    assert_eq!(next(&mut observer).await.unwrap().token, guard.token());
}

#[tokio::test]
async fn an_observer_that_does_not_look_delays_no_leader_and_gets_the_newest_value() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut observer = observer(&locks, "job").await;
    let mut leading = locks.election("job").unwrap().campaign("0").await.unwrap();
    for n in 1..500 {
        leading.proclaim(n.to_string()).await.unwrap();
    }
    assert_eq!(value(&mut observer).await, "");
    let mut last = None;
    while last != Some(499) {
        let newer = value(&mut observer).await.parse::<u32>().unwrap();
        assert!(last < Some(newer), "{newer} after {last:?}");
        last = Some(newer);
    }
    leading.resign().await.unwrap();
    assert_eq!(value(&mut observer).await, "");
    drop(observer);
    until_nothing_is_watched_but(&etcd, 0).await;
}

/// A lock that is held for a while is watched, too.
async fn until_nothing_is_watched_but(etcd: &lock_lab::Etcd, holds: u64) {
    until("the observer's watch is closed", || async {
        etcd.counters().await.unwrap().get("watchers") == holds
    })
    .await;
}

#[tokio::test]
async fn an_observer_gets_the_current_leader_after_an_outage_and_a_compaction() {
    let etcd = etcd().await;
    let (ours, proxy) = behind_proxy(&etcd, "").await;
    let theirs = locks(&etcd.url()).await;
    let mut observer = observer(&ours, "job").await;
    assert_eq!(value(&mut observer).await, "");
    proxy.refuse();
    let election = theirs.election("job").unwrap();
    election.campaign("missed").await.unwrap().resign().await.unwrap();
    let mut leading = election.campaign("missed, too").await.unwrap();
    leading.proclaim("now").await.unwrap();
    etcd.compact().await.unwrap();
    proxy.heal();
    assert_eq!(value(&mut observer).await, "now");
    etcd.restart().await.unwrap();
    soon(leading.proclaim("after a restart")).await.unwrap();
    assert_eq!(value(&mut observer).await, "after a restart");
}

/// Only the observer can notice it: the client has no session to renew.
#[tokio::test]
async fn an_observer_leaves_a_silent_connection() {
    let etcd = etcd().await;
    let first = lock_lab::Proxy::start(etcd.addr()).await.unwrap();
    let ours = locks(&format!("etcd://{},{}", first.addr(), etcd.addr())).await;
    let mut observer = observer(&ours, "job").await;
    assert_eq!(value(&mut observer).await, "");
    first.cut();
    let theirs = locks(&etcd.url()).await;
    let _leading = theirs.election("job").unwrap().campaign("now").await.unwrap();
    assert_eq!(value(&mut observer).await, "now");
}

#[tokio::test]
async fn an_observer_that_looks_after_a_compaction_gets_the_latest_value() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut observer = observer(&locks, "job").await;
    let mut leading = locks.election("job").unwrap().campaign("0").await.unwrap();
    for n in 1..200 {
        leading.proclaim(n.to_string()).await.unwrap();
    }
    etcd.compact().await.unwrap();
    let mut last = String::new();
    while last != "199" {
        last = value(&mut observer).await;
    }
}

#[tokio::test]
async fn an_observer_ends_when_it_is_dropped_or_its_client_closes() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let without = tasks();
    let mut kept = observer(&locks, "job").await;
    assert_eq!(value(&mut kept).await, "");
    let mut many = Vec::new();
    for _ in 0..50 {
        many.push(observer(&locks, "job").await);
    }
    until("all watch", || async { etcd.counters().await.unwrap().get("watchers") == 51 }).await;
    drop(many);
    until_nothing_is_watched_but(&etcd, 1).await;
    locks.close().await.unwrap();
    assert!(soon(kept.next()).await.is_none());
    let again = locks.election("job").unwrap().observe().await;
    assert!(matches!(again, Err(Error::Closed { .. })));
    until_nothing_is_watched(&etcd).await;
    until("its tasks have ended", || async { tasks() <= without }).await;
    let dropped = support::locks(&etcd.url()).await;
    let mut kept = observer(&dropped, "job").await;
    assert_eq!(value(&mut kept).await, "");
    drop(dropped);
    assert!(soon(kept.next()).await.is_none());
}

/// Takes the minimum of a few rounds: reads and renewals only add.
#[tokio::test]
async fn a_campaign_a_proclamation_and_a_new_leader_cost_few_requests() {
    let etcd = etcd().await;
    let ours = locks(&etcd.url()).await;
    let election = ours.election("job").unwrap();
    election.campaign("warm-up").await.unwrap().resign().await.unwrap();
    costs(&etcd, 40, async || {
        for _ in 0..20 {
            election.campaign("x").await.unwrap().resign().await.unwrap();
        }
    })
    .await;
    let mut leading = election.campaign("x").await.unwrap();
    let mut observers = Vec::new();
    for _ in 0..10 {
        let theirs = locks(&etcd.url()).await;
        observers.push((observer(&theirs, "job").await, theirs));
    }
    for (observer, _) in &mut observers {
        assert_eq!(value(observer).await, "x");
    }
    until("all watch", || async { etcd.counters().await.unwrap().get("watchers") >= 11 }).await;
    let mut proclaim = Vec::new();
    for n in 0..10 {
        let before = etcd.counters().await.unwrap();
        leading.proclaim(n.to_string()).await.unwrap();
        for (observer, _) in &mut observers {
            assert_eq!(value(observer).await, n.to_string());
        }
        let now = etcd.counters().await.unwrap();
        proclaim.push((requests(&now, &before), events(&now, &before)));
    }
    let cost = (vec![("Range".to_owned(), 10), ("Txn".to_owned(), 1)], 10);
    assert!(proclaim.contains(&cost), "{proclaim:?}");
    let mut change = Vec::new();
    for n in 0..10 {
        let waiting = tokio::spawn(election.campaign(n.to_string()));
        until_queued(&ours, "job", 2).await;
        let before = etcd.counters().await.unwrap();
        leading.resign().await.unwrap();
        leading = soon(waiting).await.unwrap().unwrap();
        for (observer, _) in &mut observers {
            assert_eq!(value(observer).await, n.to_string());
        }
        let now = etcd.counters().await.unwrap();
        change.push((requests(&now, &before), events(&now, &before)));
    }
    let cost = vec![("Range".to_owned(), 20), ("Txn".to_owned(), 1)];
    let least = change.iter().filter(|(spent, _)| *spent == cost).map(|(_, events)| events).min();
    assert!(least.is_some_and(|events| *events <= 11), "{change:?}");
}
