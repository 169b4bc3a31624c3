//! Many waits that end at the same time.

use std::time::Duration;

use lock_core::{Clock, Error, Locks};

const LIMIT: Duration = Duration::from_secs(3);
const WAITERS: usize = 1000;

/// Each waiter is told that it has waited in vain, and most of them which holder was in the way.
pub async fn waits_in_vain_end_together(locks: Locks) {
    let held = locks.lock("a").unwrap().holder("the holder").acquire().await.unwrap();
    let (lock, start) = (locks.lock("a").unwrap().wait(LIMIT), Clock::Boot.now());
    let waits: Vec<_> = (0..WAITERS).map(|_| tokio::spawn(lock.acquire())).collect();
    let mut named = 0;
    for wait in waits {
        match wait.await.unwrap().map(drop).unwrap_err() {
            Error::WaitTimeout { holder: None, .. } => {}
            Error::WaitTimeout { holder: Some(holder), .. } => {
                assert!(holder.to_string().contains("the holder"), "{holder}");
                named += 1;
            }
            error => panic!("{error}"),
        }
    }
    println!("{named} were told of the holder, within {:?}", Clock::Boot.now().since(start));
    assert!(named > 0, "no wait knows for whom it was");
    assert!(held.is_valid());
    held.release().await.unwrap();
}
