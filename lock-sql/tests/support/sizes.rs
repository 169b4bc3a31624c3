//! Texts that are as long as they may be.

use lock_core::Locks;

const HOLDER: usize = 64 * 1024;

/// A set of long texts goes by one statement.
pub async fn a_set_of_long_texts_is_taken(locks: Locks) {
    let names: Vec<_> = (0..locks.guarantees().names_at_once).map(|n| format!("{n}")).collect();
    let set = locks.all(&names).unwrap().holder("h".repeat(HOLDER / 8));
    set.try_acquire().await.unwrap().expect("a free set").release().await.unwrap();
}
