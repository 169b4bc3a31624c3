//! Elections: the leader, and what observers are told of it.

use lock_core::{Election, Error, Leader, Observer};
use lock_zk::client::{Acls, AuthUser, Client, Error as ZkError};

use crate::support::*;

async fn next(observer: &mut Observer) -> Option<Leader> {
    soon("a change", observer.next()).await.expect("the observer goes on").unwrap()
}

/// Returns the value that is told next.
async fn value(observer: &mut Observer) -> Option<String> {
    let leader = next(observer).await?;
    Some(String::from_utf8(leader.value).unwrap())
}

async fn observe(election: &Election) -> Observer {
    soon("it observes", election.observe()).await.unwrap()
}

fn said(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[tokio::test]
async fn a_foreign_holder_leads_with_its_data() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("foreign"));
    let mut observer = observe(&locks.election(&name).unwrap()).await;
    assert_eq!(next(&mut observer).await, None);
    for stem in ["_c_5f3b2c1e-0a4d-4f55-9c1b-3f0f7e1c2d3a-lock-", "x__lock__"] {
        let theirs = foreign(&raw, &format!("/locks/{name}"), stem).await;
        let leader = next(&mut observer).await.unwrap();
        let (_, stat) = raw.get_data(&theirs).await.unwrap();
        assert_eq!(leader.token.value(), stat.czxid.unsigned_abs());
        assert_eq!((&leader.value[..], leader.holder.description), (&b"10.0.0.1"[..], None));
        raw.set_data(&theirs, b"10.0.0.2", None).await.unwrap();
        assert_eq!(value(&mut observer).await, said("10.0.0.2"));
        raw.delete(&theirs, None).await.unwrap();
        assert_eq!(next(&mut observer).await, None);
    }
}

#[tokio::test]
async fn an_observer_follows_a_directory_that_comes_and_goes() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("gone"));
    let election = locks.election(&name).unwrap();
    let mut observer = observe(&election).await;
    assert_eq!(next(&mut observer).await, None);
    for round in ["1", "2", "3"] {
        let leading = election.campaign(round).await.unwrap();
        assert_eq!(value(&mut observer).await, said(round));
        leading.resign().await.unwrap();
        assert_eq!(next(&mut observer).await, None);
        // The server deletes an empty container, too, and may have done it by now.
        let deleted = raw.delete(&format!("/locks/{name}"), None).await;
        assert!(matches!(deleted, Ok(()) | Err(ZkError::NoNode)), "{deleted:?}");
    }
}

/// The observer is out of reach for a moment: then it reports the newest value, and none that is
/// older than one before.
#[tokio::test]
async fn an_observer_catches_up() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let (here, there) = (open(&server.url()).await, open(&server.url_via(&proxy)).await);
    let mut leading = here.election("late").unwrap().campaign("0").await.unwrap();
    let mut observer = observe(&there.election("late").unwrap()).await;
    assert_eq!(value(&mut observer).await, said("0"));
    let mut seen = 0;
    for round in 1..6 {
        proxy.reset();
        proxy.refuse();
        let values = (round - 1) * 15 + 1..round * 15 + 1;
        for n in values.clone() {
            leading.proclaim(n.to_string()).await.unwrap();
        }
        proxy.heal();
        while seen < values.end - 1 {
            let now = value(&mut observer).await.unwrap().parse().unwrap();
            assert!(now > seen && values.contains(&now), "{now} after {seen}");
            seen = now;
        }
    }
}

#[tokio::test]
async fn an_observer_survives_a_restart_of_the_server() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    let election = locks.election("restart").unwrap();
    let mut leading = election.campaign("before").await.unwrap();
    let mut observer = observe(&election).await;
    assert_eq!(value(&mut observer).await, said("before"));
    server.spoil();
    server.restart().await.unwrap();
    leading.proclaim("after").await.unwrap();
    assert_eq!(value(&mut observer).await, said("after"));
    leading.resign().await.unwrap();
    assert_eq!(next(&mut observer).await, None);
}

/// In its next session the observer sees the leader that came, and then its end.
#[tokio::test]
async fn an_observer_outlives_its_session() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let url = format!("{}?ttl=2s", server.url_via(&proxy));
    let (here, there) = (open(&server.url()).await, open(&url).await);
    let election = here.election("outage").unwrap().ttl(SHORT);
    let mut observer = observe(&there.election("outage").unwrap()).await;
    assert_eq!(next(&mut observer).await, None);
    proxy.cut();
    let leading = election.campaign("meanwhile").await.unwrap();
    let sessions = || async { server.counters().await.unwrap().get("sessions_expired") };
    eventually("the observer's session is over", || async { sessions().await > 0 }).await;
    proxy.heal();
    assert_eq!(value(&mut observer).await, said("meanwhile"));
    leading.resign().await.unwrap();
    assert_eq!(next(&mut observer).await, None);
}

/// Permissions were taken away: the error is told once, and ends the observer.
#[tokio::test]
async fn an_observer_is_told_once_that_it_is_denied() {
    let server = shared().await;
    let (locks, name) = (open(&server.url()).await, fresh("denied"));
    let mut observer = observe(&locks.election(&name).unwrap()).await;
    assert_eq!(next(&mut observer).await, None);
    let owner = owner(server.addr().to_string()).await;
    let directory = format!("/locks/{name}");
    let theirs = foreign(&owner, &directory, "x-lock-").await;
    assert!(next(&mut observer).await.is_some());
    // An empty directory would be deleted, and its permissions with it.
    keep(server, &directory).await;
    owner.set_acl(&directory, Acls::creator_all().as_ref(), None).await.unwrap();
    owner.delete(&theirs, None).await.unwrap();
    let error = soon("an error", observer.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(soon("the end", observer.next()).await.is_none());
    let error = locks.election(&name).unwrap().observe().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

async fn owner(addr: String) -> Client {
    let client = patient().with_auth("digest", b"me:secret").connect(&addr).await.unwrap();
    let users = client.list_auth_users().await.unwrap();
    assert!(users.iter().any(|user: &AuthUser| user.scheme() == "digest"), "{users:?}");
    client
}

/// No watch stays: on a leader, on an empty directory, or on one that does not exist.
#[tokio::test]
async fn observers_that_are_dropped_leave_nothing() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let mut observers = Vec::new();
    let empty = locks.election("empty").unwrap();
    empty.campaign("x").await.unwrap().resign().await.unwrap();
    let led = locks.election("led").unwrap();
    let _leading = led.campaign("x").await.unwrap();
    let watches = || async { server.counters().await.unwrap().get("watches") };
    // One more for the token floor.
    eventually("the leader watches itself", || async { watches().await == 2 }).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for election in [locks.election("none").unwrap(), empty, led] {
        for _ in 0..3 {
            observers.push(observe(&election).await);
        }
    }
    // One watch per session and node, for any number of observers. The server may be deleting the
    // empty directory.
    eventually("all observe", || async { watches().await == 5 && tasks() == before + 9 }).await;
    observers.truncate(1);
    eventually("two watches are gone", || async { watches().await == 3 }).await;
    observers.clear();
    eventually("all are gone", || async { watches().await == 2 && tasks() == before }).await;
}

#[tokio::test]
async fn observers_end_with_the_client() {
    let server = server().await;
    for close in [true, false] {
        let locks = open(&server.url()).await;
        let election = locks.election("end").unwrap();
        let mut observer = observe(&election).await;
        assert_eq!(next(&mut observer).await, None);
        if close {
            locks.close().await.unwrap();
        }
        drop((locks, election));
        assert!(soon("the end", observer.next()).await.is_none());
        eventually("the session is gone", || async {
            server.counters().await.unwrap().get("sessions") == 0
        })
        .await;
    }
}
