//! Texts that are as long as they may be, and longer ones.

use lock_core::{Error, Locks, Result};

const VALUE: usize = 1024 * 1024;
const HOLDER: usize = 64 * 1024;

fn is_refused<T: std::fmt::Debug>(result: Result<T>, name: &str) {
    let refused = result.unwrap_err();
    assert!(matches!(&refused, Error::InvalidOption { option, .. } if option == name), "{refused}");
}

/// What is too long is refused before it is sent, and ends nothing.
pub async fn texts_have_a_longest_length(locks: Locks) {
    let election = locks.election("leader").unwrap();
    is_refused(election.campaign(vec![0; VALUE + 1]).await, "value");
    let mut leader = election.campaign(vec![1; VALUE]).await.unwrap();
    is_refused(leader.proclaim(vec![2; VALUE + 1]).await, "value");
    leader.proclaim(vec![3; VALUE]).await.unwrap();
    let seen = election.leader().await.unwrap().unwrap();
    assert!(seen.value == [3; VALUE]);
    let lock = locks.lock("a").unwrap();
    is_refused(lock.clone().holder("h".repeat(HOLDER + 1)).acquire().await, "holder");
    let held = lock.holder("h".repeat(HOLDER)).acquire().await.unwrap();
    assert!(leader.is_valid());
    held.release().await.unwrap();
    leader.resign().await.unwrap();
}

/// A set of long texts goes by one statement.
pub async fn a_set_of_long_texts_is_taken(locks: Locks) {
    let names: Vec<_> = (0..locks.guarantees().names_at_once).map(|n| format!("{n}")).collect();
    let set = locks.all(&names).unwrap().holder("h".repeat(HOLDER / 8));
    set.try_acquire().await.unwrap().expect("a free set").release().await.unwrap();
}
