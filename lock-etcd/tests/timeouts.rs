//! The end of waits in vain, for any number of waiters.

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::Error;

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_waits_in_vain_ends_as_timeouts_that_name_the_holder() {
    // Many more than may be under way.
    let waiters = lock_lab::size(200, 1000);
    let etcd = etcd().await;
    let other = locks(&etcd.url()).await;
    let held = other.lock("job").unwrap().holder("the holder").acquire().await.unwrap();
    let (ours, proxy) = behind_proxy(&etcd, "").await;
    proxy.delay(Duration::from_millis(1));
    let lock = ours.lock("job").unwrap().wait(Duration::from_secs(6));
    let waiting: Vec<_> = (0..waiters).map(|_| tokio::spawn(lock.acquire())).collect();
    let mut named = 0;
    for waited in join_all(waiting).await {
        let error = waited.unwrap().unwrap_err();
        let Error::WaitTimeout { holder, .. } = &error else { panic!("{error}") };
        let holder = holder.as_ref().and_then(|holder| holder.description.as_deref());
        named += usize::from(holder == Some("the holder"));
    }
    println!("{named} of {waiters} heard of the holder");
    assert!(named > 0);
    assert!(held.is_valid());
}
