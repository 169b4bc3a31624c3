//! What errors say.

use std::time::{Duration, SystemTime};

use lock_core::{Error, Holder, Locks, wall_clock};
use lock_memory::MemoryStore;

const TTL: Duration = Duration::from_secs(2);

/// The operation that an error names.
fn op<T: std::fmt::Debug>(failed: lock_core::Result<T>) -> &'static str {
    match failed {
        Err(Error::Unavailable { op, .. }) => op,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_names_what_the_caller_asked_for() {
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
        said.starts_with("gave up on lock a after 3.0s: held by the nightly report for 3.2"),
        "{said}"
    );
    let said = timeout(None).to_string();
    assert_eq!(said, "gave up on lock a after 3.0s: the store did not say who holds it");
}
