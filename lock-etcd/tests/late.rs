//! Requests that arrive late, after their attempt was resolved on another connection to etcd.

use std::time::Duration;

use lock_core::{DistributedLock, Error, Kind, Locks, LossReason, Request};
use lock_etcd::{
    EtcdLease, EtcdLock,
    client::{Client, GetOptions},
};
use lock_lab::{Etcd, Proxy};

use crate::support::{self, *};

/// Two connections to one etcd, one of which becomes slow.
struct Ways {
    etcd: Etcd,
    ways: [Proxy; 2],
}

impl Ways {
    async fn new() -> Self {
        let etcd = etcd().await;
        let ways =
            [Proxy::start(etcd.addr()).await.unwrap(), Proxy::start(etcd.addr()).await.unwrap()];
        Self { etcd, ways }
    }

    fn url(&self) -> String {
        format!("etcd://{},{}?ttl=60s", self.ways[0].addr(), self.ways[1].addr())
    }

    async fn locks(&self) -> Locks {
        let locks = locks(&self.url()).await;
        // It has a session from now on, so only the requests for a lock are under way.
        locks.lock("warm-up").unwrap().acquire().await.unwrap().release().await.unwrap();
        locks
    }

    async fn driver(&self) -> EtcdLock {
        let driver = driver(&self.url()).await;
        let request = Request::new(name("warm-up"), TTL);
        acquire(&driver, request).await.release().await.unwrap();
        driver
    }

    /// Delays the next request of `act` that contains this part. `act` is resolved on the other
    /// connection.
    async fn late<T>(&self, part: &str, act: impl Future<Output = T>) -> T {
        let caught = async {
            self.ways.iter().for_each(|way| way.catch(part.as_bytes()));
            until("it is caught", || async { self.caught() == 1 }).await;
            self.ways.iter().for_each(Proxy::catch_nothing);
        };
        let ((), done) = tokio::join!(caught, soon(act));
        done
    }

    fn caught(&self) -> u64 {
        self.ways.iter().map(Proxy::caught).sum()
    }

    /// Delivers the late request. Returns when etcd has answered it.
    async fn arrives(&self) {
        let answered = || async {
            let counters = self.etcd.counters().await.unwrap();
            counters.get("rpc.Txn") + counters.get("rpc.DeleteRange")
        };
        let before = answered().await;
        self.ways.iter().for_each(Proxy::deliver);
        until("it has arrived", || async { answered().await > before }).await;
    }

    async fn entries(&self, queue: &str) -> Vec<String> {
        let keys = keys(&self.etcd).await.into_iter();
        keys.filter(|key| key.starts_with(queue)).collect()
    }

    /// Returns the start of its session's keys in a queue.
    async fn part(&self, queue: &str) -> String {
        format!("{queue}{:x}.", self.etcd.leases().await.unwrap()[0])
    }
}

const TTL: Duration = Duration::from_secs(60);

/// Longer than any request should be under way, and longer than the first edition reserved a key.
const VERY_LATE: Duration = Duration::from_secs(11);

#[tokio::test]
async fn an_acquire_that_arrives_after_the_release_makes_no_entry() {
    let ways = Ways::new().await;
    let locks = ways.locks().await;
    let part = ways.part("job/").await;
    let guard = ways.late(&part, locks.lock("job").unwrap().acquire()).await.unwrap();
    guard.release().await.unwrap();
    ways.arrives().await;
    assert_eq!(ways.entries("job").await, [""; 0]);
}

#[tokio::test]
async fn a_try_a_set_and_a_campaign_that_arrive_late_make_no_entry() {
    for what in 0..3 {
        let ways = Ways::new().await;
        let locks = ways.locks().await;
        let part = ways.part("job/").await;
        match what {
            0 => {
                let trying = locks.lock("job").unwrap().try_acquire();
                ways.late(&part, trying).await.unwrap().unwrap().release().await.unwrap();
            }
            1 => {
                let set = locks.all(["job", "other"]).unwrap();
                ways.late(&part, set.acquire()).await.unwrap().release().await.unwrap();
            }
            _ => {
                let election = locks.election("job").unwrap();
                ways.late(&part, election.campaign("x")).await.unwrap().resign().await.unwrap();
            }
        }
        ways.arrives().await;
        assert_eq!(ways.entries("job").await, [""; 0]);
        assert_eq!(ways.entries("other").await, [""; 0]);
    }
}

#[tokio::test]
async fn an_acquire_that_arrives_after_it_was_given_up_makes_no_entry() {
    let ways = Ways::new().await;
    let locks = ways.locks().await;
    let part = ways.part("job/").await;
    let acquiring = tokio::spawn(locks.lock("job").unwrap().acquire());
    ways.late(&part, async {
        until("it is on its way", || async { ways.caught() == 1 }).await;
        acquiring.abort();
    })
    .await;
    // Another attempt of the same client: the entry of the first one is resolved before it is
    // served.
    let guard = soon(locks.lock("job").unwrap().acquire()).await.unwrap();
    until("one is left", || async { ways.entries("job/").await.len() == 1 }).await;
    guard.release().await.unwrap();
    until("none is left", || async { ways.entries("job/").await.is_empty() }).await;
    ways.arrives().await;
    assert_eq!(ways.entries("job/").await, [""; 0]);
}

/// Another entry gets the key of an acquire before that is sent again, or given up.
#[tokio::test]
async fn anothers_entry_is_neither_taken_for_its_own_nor_removed() {
    for is_given_up in [false, true] {
        let ways = Ways::new().await;
        let ours = ways.locks().await;
        let part = ways.part("job/").await;
        let theirs = support::locks(&ways.etcd.url()).await;
        let key = format!("{part}0");
        ways.ways.iter().for_each(|way| way.catch(part.as_bytes()));
        let mut acquiring = tokio::spawn(ours.lock("job").unwrap().acquire());
        until("it is on its way", || async { ways.caught() == 1 }).await;
        ways.ways.iter().for_each(Proxy::catch_nothing);
        ways.etcd.put(key.as_bytes(), b"").await.unwrap();
        if is_given_up {
            acquiring.abort();
            acquiring = tokio::spawn(ours.lock("job").unwrap().acquire());
        }
        until_queued(&theirs, "job", 2).await;
        assert!(!acquiring.is_finished() && ways.entries("job/").await.contains(&key));
        assert_eq!(ways.etcd.delete(key.as_bytes()).await.unwrap(), 1);
        soon(acquiring).await.unwrap().unwrap().release().await.unwrap();
        ways.arrives().await;
        assert_eq!(ways.entries("job/").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_release_or_a_clean_up_that_arrives_late_removes_no_new_entry() {
    let (released, left) = (Ways::new().await, Ways::new().await);
    let release = async {
        let locks = released.locks().await;
        let guard = locks.lock("job").unwrap().acquire().await.unwrap();
        let part = released.part("job/").await;
        released.late(&part, guard.release()).await.unwrap();
        tokio::time::sleep(VERY_LATE).await;
        let guard = locks.lock("job").unwrap().acquire().await.unwrap();
        let entries = released.entries("job/").await;
        released.arrives().await;
        assert_eq!(released.entries("job/").await, entries, "the new holder's entry is gone");
        assert!(guard.is_valid());
    };
    let clean_up = async {
        let others = support::locks(&left.etcd.url()).await;
        let locks = left.locks().await;
        let part = left.part("job/").await;
        let guard = others.lock("job").unwrap().acquire().await.unwrap();
        let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
        until_queued(&others, "job", 2).await;
        left.late(&part, async { waiting.abort() }).await;
        until_queued(&others, "job", 1).await;
        guard.release().await.unwrap();
        tokio::time::sleep(VERY_LATE).await;
        let guard = locks.lock("job").unwrap().acquire().await.unwrap();
        let entries = left.entries("job/").await;
        left.arrives().await;
        assert_eq!(left.entries("job/").await, entries, "the new holder's entry is gone");
        assert!(guard.is_valid());
    };
    tokio::join!(release, clean_up);
}

#[tokio::test]
async fn conversions_that_arrive_late_change_no_new_entry() {
    for upgrades in [false, true] {
        let ways = Ways::new().await;
        let driver = ways.driver().await;
        let part = ways.part("job/").await;
        let mut request = Request::new(name("job"), TTL);
        request.kind = if upgrades { Kind::Shared } else { Kind::Exclusive };
        let lease = acquire(&driver, request.clone()).await;
        match upgrades {
            true => assert!(ways.late(&part, lease.try_upgrade()).await.unwrap()),
            false => ways.late(&part, lease.downgrade()).await.unwrap(),
        }
        lease.release().await.unwrap();
        let again = acquire(&driver, request).await;
        until("only the new one is left", || async { ways.entries("job").await.len() == 1 }).await;
        let entries = ways.entries("job").await;
        ways.arrives().await;
        assert_eq!(ways.entries("job").await, entries);
        assert_eq!(driver.inspect(&name("job")).await.unwrap().len(), 1);
        assert!(!again.validity().has_ended());
    }
}

#[tokio::test]
async fn a_proclamation_that_arrives_late_is_not_the_next_leaders() {
    let ways = Ways::new().await;
    let locks = ways.locks().await;
    let part = ways.part("job/").await;
    let election = locks.election("job").unwrap();
    let mut leading = election.campaign("first").await.unwrap();
    ways.late(&part, leading.proclaim("late")).await.unwrap();
    leading.resign().await.unwrap();
    let leading = election.campaign("second").await.unwrap();
    ways.arrives().await;
    let mut raw = Client::connect([ways.etcd.addr().to_string()], None).await.unwrap();
    let key = leading.lease_as::<EtcdLease>().unwrap().key();
    assert_eq!(raw.get(&*key, None).await.unwrap().kvs()[0].value(), b"second");
}

#[tokio::test]
async fn a_detach_that_arrives_after_the_adoption_takes_nothing_back() {
    let ways = Ways::new().await;
    let (locks, other) = (ways.locks().await, locks(&ways.etcd.url()).await);
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let ticket = ways.late("job/", guard.detach()).await.unwrap();
    let adopted = other.adopt(&ticket).await.unwrap();
    let before = other.inspect("job").await.unwrap()[0].attempt;
    ways.arrives().await;
    assert_eq!(other.inspect("job").await.unwrap()[0].attempt, before);
    let again = other.adopt(&ticket).await;
    assert!(matches!(again, Err(Error::Lost { reason: LossReason::Adopted, .. })), "{again:?}");
    assert!(adopted.is_valid());
    adopted.release().await.unwrap();
    assert_eq!(ways.entries("job/").await, [""; 0]);
}

#[tokio::test]
async fn an_adoption_that_arrives_late_makes_no_entry() {
    let ways = Ways::new().await;
    let (locks, first) = (ways.locks().await, locks(&ways.etcd.url()).await);
    let leave = || async {
        let guard = first.lock("job").unwrap().ttl(TTL).acquire().await.unwrap();
        guard.detach().await.unwrap()
    };
    let guard = ways.late("job/", locks.adopt(&leave().await)).await.unwrap();
    guard.release().await.unwrap();
    ways.arrives().await;
    assert_eq!(ways.entries("job/").await, [""; 0]);
}

/// The lock stays as it was left: the ticket is not used.
#[tokio::test]
async fn an_adoption_that_was_given_up_takes_nothing_also_when_it_arrives() {
    let ways = Ways::new().await;
    let (locks, first) = (ways.locks().await, locks(&ways.etcd.url()).await);
    let guard = first.lock("job").unwrap().ttl(TTL).acquire().await.unwrap();
    let ticket = guard.detach().await.unwrap();
    let adopting = tokio::spawn(locks.adopt(&ticket));
    ways.late("job/", async {
        until("it is on its way", || async { ways.caught() == 1 }).await;
        adopting.abort();
    })
    .await;
    let raw = Client::connect([ways.etcd.addr().to_string()], None).await.unwrap();
    until("its epoch is over", || async {
        let all = Some(GetOptions::new().with_prefix());
        let sessions = raw.clone().get("#session", all).await.unwrap();
        sessions.kvs().iter().any(|kv| kv.mod_revision() > kv.create_revision())
    })
    .await;
    ways.arrives().await;
    let adopted = first.adopt(&ticket).await.unwrap();
    adopted.release().await.unwrap();
    assert_eq!(ways.entries("job/").await, [""; 0]);
}
