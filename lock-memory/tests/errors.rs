//! The texts of errors.

use std::time::{Duration, SystemTime};

use lock_core::{Effect, Error, Holder, LockName, Locks, LossReason, wall_clock};
use lock_memory::MemoryStore;

const TTL: Duration = Duration::from_secs(2);

/// Returns the operation that an error names.
fn op<T: std::fmt::Debug>(failed: lock_core::Result<T>) -> &'static str {
    match failed {
        Err(Error::Unavailable { op, .. }) => op,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_names_the_callers_operation() {
    let client = MemoryStore::new().client();
    let faults = client.faults();
    let locks = Locks::new(client);
    let lock = locks.lock("a").unwrap().ttl(TTL);
    let hold = |name| locks.lock(name).unwrap().ttl(TTL).acquire();
    let (renewed, freed) = (hold("renewed").await.unwrap(), hold("freed").await.unwrap());
    let mut converted = hold("converted").await.unwrap();
    let election = locks.election("e").unwrap().ttl(TTL);
    faults.partition();
    let (renewed, converted, freed) =
        tokio::join!(renewed.renew(), converted.downgrade(), freed.release());
    assert_eq!((op(renewed), op(converted), op(freed)), ("renew", "downgrade", "release"));
    let set = locks.all(["a", "b"]).unwrap().ttl(TTL);
    assert_eq!(op(lock.acquire().await), "acquire");
    assert_eq!(op(lock.clone().wait(TTL / 4).acquire().await), "acquire");
    assert_eq!(op(lock.clone().wait(Duration::ZERO).acquire().await), "acquire");
    assert_eq!(op(lock.try_acquire().await), "try_acquire");
    assert_eq!(op(set.acquire().await), "acquire");
    assert_eq!(op(set.try_acquire().await), "try_acquire");
    assert_eq!(op(election.campaign("x").await), "campaign");
    assert_eq!(op(election.try_campaign("x").await), "try_campaign");
    assert_eq!(op(election.leader().await), "leader");
    assert_eq!(op(locks.inspect("a").await), "inspect");
    assert_eq!(op(locks.names("").await), "names");
    assert_eq!(op(locks.revoke("a", uuid::Uuid::new_v4()).await), "revoke");
}

/// A store that refuses is told apart from one that is silent, and from a lock that is taken.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_error_of_its_own() {
    let store = MemoryStore::new();
    let client = store.client();
    let faults = client.faults();
    let locks = Locks::new(client);
    let lock = locks.lock("a").unwrap().ttl(TTL);
    let held = lock.acquire().await.unwrap();
    faults.deny();
    let denied = lock.try_acquire().await;
    assert!(matches!(denied, Err(Error::Denied { op: "try_acquire", .. })), "{denied:?}");
    assert!(held.is_valid());
    assert_eq!(held.lost().await, LossReason::Expired);
    faults.reject();
    let rejected = lock.acquire().await;
    assert!(
        matches!(rejected, Err(Error::Rejected { op: "acquire", effect: Effect::None, .. })),
        "{rejected:?}"
    );
    faults.heal();
    lock.acquire().await.unwrap().release().await.unwrap();
    assert!(store.contents().is_empty(), "no refused request had an effect");
}

#[test]
fn a_timeout_says_for_how_long_the_holder_has_the_lock() {
    let since: SystemTime = wall_clock() - Duration::from_millis(3210);
    let holder = Holder::new(Some("the nightly report".to_owned()), None).granted(Some(since));
    let said = holder.to_string();
    assert!(said.starts_with("the nightly report for 3.2"), "{said}");
    let waited = Holder::new(Some("somebody".to_owned()), None).queued(Some(since));
    assert!(waited.to_string().starts_with("somebody (queued 3.2"), "{waited}");
    let timeout = |holder| Error::WaitTimeout {
        name: lock_core::LockName::new("a").unwrap(),
        waited: Duration::from_secs(3),
        holder,
        position: None,
    };
    let said = timeout(Some(Box::new(holder))).to_string();
    assert!(
        said.starts_with("gave up on lock a after 3s: held by the nightly report for 3.2"),
        "{said}"
    );
    let said = timeout(None).to_string();
    assert_eq!(said, "gave up on lock a after 3s: the store did not say who holds it");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_what_to_do_next_and_about_which_lock() {
    let locks = Locks::new(MemoryStore::new().client());
    let lock = locks.lock("a").unwrap();
    let held = lock.acquire().await.unwrap();
    let vain = lock.clone().wait(Duration::ZERO).acquire().await.unwrap_err();
    assert!(vain.is_busy() && !vain.is_lost() && !vain.is_unavailable(), "{vain}");
    assert_eq!(vain.name().map(LockName::as_str), Some("a"));
    let entry = locks.inspect("a").await.unwrap().remove(0);
    assert!(locks.revoke("a", entry.attempt.unwrap()).await.unwrap());
    held.lost().await;
    let lost = held.release().await.unwrap_err();
    assert!(lost.is_lost() && !lost.is_busy() && lost.name().is_some(), "{lost}");
    locks.close().await.unwrap();
    let closed = lock.acquire().await.unwrap_err();
    assert!(!closed.is_lost() && !closed.is_busy() && closed.name().is_some(), "{closed}");
}

#[tokio::test(start_paused = true)]
async fn entries_and_guarantees_are_lines_for_people() {
    let locks = Locks::new(MemoryStore::new().client());
    let guard = locks.lock("a").unwrap().holder("the report").acquire().await.unwrap();
    let entry = locks.inspect("a").await.unwrap().remove(0).to_string();
    assert!(entry.starts_with("the report for "), "{entry}");
    let rest = format!("with token {}: holds, exclusive, 15s left", guard.token());
    assert!(entry.ends_with(&rest), "{entry}");
    let promises = locks.guarantees().to_string();
    assert!(promises.starts_with("memory: exclusive locks, "), "{promises}");
    assert!(promises.contains("first come, first served, woken by a push"), "{promises}");
    assert!(promises.ends_with("TTL 200ms to 1d"), "{promises}");
}
