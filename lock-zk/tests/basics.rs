//! Locks when nothing is broken.

use std::time::Duration;

use lock_core::{Attempt, Clock, Error, Fencing, LockName, LossReason, Request, Requirement, Term};

use crate::support::*;

#[tokio::test]
async fn tokens_rise_when_the_directory_was_reaped_and_sequences_begin_again() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("reaped"));
    let lock = locks.lock(&name).unwrap();
    let mut highest = None;
    for _ in 0..2 {
        let guard = lock.acquire().await.unwrap();
        assert!(Some(guard.token()) > highest);
        highest = Some(guard.token());
        let entry = children(&raw, &format!("/locks/{name}")).await.pop().unwrap();
        assert!(entry.ends_with("-lock-0000000000"), "{entry}");
        guard.release().await.unwrap();
        eventually("the server deletes the empty container", || async {
            raw.check_stat(&format!("/locks/{name}")).await.unwrap().is_none()
        })
        .await;
    }
}

#[tokio::test]
async fn waiters_are_served_in_order_also_across_clients_and_when_one_leaves() {
    let url = shared().await.url();
    let (here, there, name) = (open(&url).await, open(&url).await, fresh("order"));
    let holder = here.lock(&name).unwrap().acquire().await.unwrap();
    let mut waiters = Vec::new();
    for (position, locks) in [&here, &there, &there, &here, &here, &there].into_iter().enumerate() {
        let lock = locks.lock(&name).unwrap();
        waiters.push(queue_up(&here, lock, &name, position + 1).await);
    }
    // A waiter in the middle leaves.
    waiters.remove(2).abort();
    eventually("its entry is gone", || async { here.inspect(&name).await.unwrap().len() == 6 })
        .await;
    let mut last = holder.token();
    holder.release().await.unwrap();
    for waiter in waiters {
        let guard = soon("the next in line holds", waiter).await.unwrap().unwrap();
        assert!(guard.token() > last);
        last = guard.token();
        assert_eq!(here.inspect(&name).await.unwrap()[0].holder.token, Some(last));
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_timed_out_wait_names_the_holder() {
    let locks = open(&shared().await.url()).await;
    let name = fresh("blame");
    let lock = locks.lock(&name).unwrap().holder("the importer");
    let holder = lock.acquire().await.unwrap();
    let alone = locks.inspect(&name).await.unwrap().remove(0).holder;
    assert!(alone.granted_at.is_some() && alone.granted_at == alone.queued_at, "{alone:?}");
    let error = lock.clone().wait(Duration::from_millis(50)).acquire().await.unwrap_err();
    let Error::WaitTimeout { holder: Some(who), position, .. } = error else { panic!("{error}") };
    assert_eq!(who.description.as_deref(), Some("the importer"));
    assert_eq!((who.token, position), (Some(holder.token()), Some(1)));
    assert!(who.queued_at.is_some());
    eventually("nothing remains of the waiter", || async {
        locks.inspect(&name).await.unwrap().len() == 1
    })
    .await;
}

#[tokio::test]
async fn native_names_are_paths() {
    let server = shared().await;
    let locks = open(&format!("{}?layout=native&prefix=/app/locks", server.url())).await;
    let (raw, name) = (raw(server).await, fresh("native"));
    let outer = locks.lock(&name).unwrap().acquire().await.unwrap();
    let inner = locks.lock(format!("{name}/part")).unwrap().acquire().await.unwrap();
    assert_eq!(children(&raw, &format!("/app/locks/{name}")).await.len(), 2);
    assert_eq!(children(&raw, &format!("/app/locks/{name}/part")).await.len(), 1);
    let error = locks.lock("a//b").unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::InvalidName { .. }), "{error}");
    drop((outer, inner));
}

#[tokio::test]
async fn a_ttl_that_the_server_would_clamp_is_an_error_with_the_range() {
    let server = shared().await;
    let locks = open(&server.url()).await;
    let promised = locks.guarantees();
    assert_eq!(promised.ttl, Duration::from_secs(1)..=Duration::from_secs(10));
    assert_eq!(promised.default_ttl, Duration::from_secs(10));
    assert_eq!(promised.fencing, Fencing::Strict("czxid, plus the token floor"));
    for requirement in [Requirement::Fifo, Requirement::Push, Requirement::SurvivesRestart] {
        assert!(promised.meets(requirement));
    }
    let lock = locks.lock(fresh("ttl")).unwrap();
    let error = lock.ttl(Duration::from_secs(11)).acquire().await.unwrap_err().to_string();
    assert!(error.contains("1s to 10s"), "{error}");
    let error = driver(&format!("{}?ttl=500ms", server.url())).await.unwrap_err().to_string();
    assert!(error.contains("1s to 10s"), "{error}");
}

#[tokio::test]
async fn each_ttl_has_a_session_and_their_number_is_bounded() {
    let locks = open(&shared().await.url()).await;
    let name = fresh("ttls");
    let lock =
        |ttl: u64| locks.lock(format!("{name}{ttl}")).unwrap().ttl(Duration::from_millis(ttl));
    let mut held = Vec::new();
    for ttl in 0..8 {
        held.push(lock(2000 + ttl).acquire().await.unwrap());
    }
    let error = lock(3000).acquire().await.unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    // An idle session makes room.
    held.pop().unwrap().release().await.unwrap();
    lock(3000).acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_session_that_only_asks_makes_room() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let locks = open(&server.url_via(&proxy)).await;
    let lock = |ttl: u64| locks.lock(format!("{ttl}")).unwrap().ttl(Duration::from_millis(ttl));
    let mut held = Vec::new();
    for ttl in 0..8 {
        held.push(lock(2000 + ttl).acquire().await.unwrap());
    }
    // The round trip takes longer than the time between two renewals: each session always waits for
    // one.
    proxy.delay(Duration::from_millis(150));
    held.pop().unwrap().release().await.unwrap();
    let asked = proxy.stats().chunks_up;
    eventually("they ask", || async { proxy.stats().chunks_up > asked + 16 }).await;
    let _held = lock(3000).acquire().await.unwrap();
}

#[tokio::test]
async fn an_operator_deletes_entries_and_both_holder_and_waiter_are_told() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("revoked"));
    let directory = format!("/locks/{name}");
    let holder = locks.lock(&name).unwrap().acquire().await.unwrap();
    let waiter = queue_up(&locks, locks.lock(&name).unwrap(), &name, 1).await;
    let last = queue_up(&locks, locks.lock(&name).unwrap(), &name, 2).await;
    let entries = in_order(&raw, &directory).await;
    raw.delete(&format!("{directory}/{}", entries[1]), None).await.unwrap();
    let told = soon("the waiter is told", waiter).await.unwrap().unwrap_err();
    assert!(lost_its_place(&told), "{told}");
    raw.delete(&format!("{directory}/{}", entries[0]), None).await.unwrap();
    assert_eq!(soon("the holder is told", holder.lost()).await, LossReason::EntryGone);
    drop(soon("the last one holds", last).await.unwrap().unwrap());
}

/// Both ends come in one read, its own first. One thread: the task woken last runs first, which is the
/// waiter and not the task that hears of its own end.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_waiter_whose_node_goes_with_the_holders_is_not_granted() {
    let server = server().await;
    let (a, b, raw) = (open(&server.url()).await, open(&server.url()).await, raw(&server).await);
    for round in 0..20 {
        let (name, before) = (fresh("both"), watches(&server).await);
        let directory = format!("/locks/{name}");
        let holder = a.lock(&name).unwrap().acquire().await.unwrap();
        let waiter = queue_up(&b, b.lock(&name).unwrap(), &name, 1).await;
        // Both nodes by their owners, and the holder's by the waiter.
        eventually("all is watched", async || watches(&server).await == before + 3).await;
        let entries = in_order(&raw, &directory).await;
        let mut deletes = raw.new_multi_writer();
        for entry in [&entries[1], &entries[0]] {
            deletes.add_delete(&format!("{directory}/{entry}"), None).unwrap();
        }
        deletes.commit().await.unwrap();
        let told = soon("the waiter is told", waiter).await.unwrap();
        let told = told.map(drop).expect_err("a grant by an entry that is gone");
        assert!(lost_its_place(&told), "round {round}: {told}");
        assert_eq!(soon("the holder is told", holder.lost()).await, LossReason::EntryGone);
    }
}

/// The entries of a queue, the first one first.
async fn in_order(raw: &zookeeper_client::Client, directory: &str) -> Vec<String> {
    let mut entries = children(raw, directory).await;
    entries.sort_by_key(|entry| entry.rsplit_once('-').map(|(_, seq)| seq.to_owned()));
    entries
}

async fn watches(server: &lock_lab::ZooKeeper) -> u64 {
    server.counters().await.unwrap().get("watches")
}

/// Long enough that a busy machine uses up no fifth of it.
const TERM: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_fixed_term_ends_on_time_and_can_be_renewed() {
    let locks = open(&shared().await.url()).await;
    let name = fresh("fixed");
    let lock = locks.lock(&name).unwrap().ttl(TERM).fixed_term();
    let guard = lock.acquire().await.unwrap();
    let before = guard.remaining();
    assert!(before > TERM * 8 / 10 && before < TERM);
    eventually("a part of the term is over", || async { guard.remaining() < TERM / 2 }).await;
    guard.renew().await.unwrap();
    assert!(guard.remaining() > TERM * 8 / 10);
    let next = queue_up(&locks, lock, &name, 1).await;
    assert_eq!(soon("the term ends", guard.lost()).await, LossReason::TermOver);
    let next = soon("the next one holds", next).await.unwrap().unwrap();
    assert!(next.remaining() > TERM * 8 / 10, "a full term: {:?}", next.remaining());
}

/// The driver itself refuses it, too: its caller may have been slow.
#[tokio::test]
async fn a_renewal_after_the_end_of_a_fixed_term_is_refused() {
    let driver = as_dyn(driver(&shared().await.url()).await.unwrap());
    let mut request = Request::new(LockName::new(fresh("late")).unwrap(), TERM);
    request.term = Term::Fixed;
    let lease = driver.acquire(request, Attempt::new()).await.unwrap();
    // Heartbeats move the deadline up to the end of the term.
    while Clock::Boot.now() < lease.validity().until() {
        Clock::Boot.sleep_until(lease.validity().until()).await;
    }
    let renewed = lease.renew().await;
    assert!(matches!(renewed, Err(Error::Lost { .. })), "{renewed:?}");
    assert!(lease.validity().until() <= Clock::Boot.now());
    drop(lease);
}

#[tokio::test]
async fn closing_frees_everything_and_later_calls_say_so() {
    let server = shared().await;
    let (locks, raw, name) = (open(&server.url()).await, raw(server).await, fresh("closed"));
    let guard = locks.lock(&name).unwrap().acquire().await.unwrap();
    let short = locks.lock(format!("{name}2")).unwrap().ttl(SHORT).acquire().await.unwrap();
    soon("the server confirms", locks.driver().close()).await.unwrap();
    for directory in [format!("/locks/{name}"), format!("/locks/{name}2")] {
        assert!(children(&raw, &directory).await.is_empty());
    }
    assert_eq!(guard.lost().await, LossReason::Closed);
    assert!(!short.is_valid());
    let error = locks.lock(&name).unwrap().acquire().await.unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error}");
    assert!(matches!(locks.inspect(&name).await, Err(Error::Closed { .. })));
    locks.driver().close().await.unwrap();
}

#[tokio::test]
async fn dropping_everything_ends_the_session() {
    let server = server().await;
    let locks = open(&server.url()).await;
    let guard = locks.lock("dropped").unwrap().acquire().await.unwrap();
    drop(locks);
    assert!(guard.is_valid());
    drop(guard);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    eventually("no task is left", || async { tasks() == 0 }).await;
    eventually("no session is left", || async {
        let counters = server.counters().await.unwrap();
        counters.get("sessions") == 0 && counters.get("ephemerals") == 0
    })
    .await;
}
