//! The end of waits in vain, for any number of waiters.

use std::time::Duration;

use futures_util::future::join_all;
use lock_core::Error;

use crate::support::*;

const WAITERS: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waits_in_vain_end_as_timeouts_that_name_the_holder() {
    let etcd = etcd().await;
    let other = locks(&etcd.url()).await;
    let held = other.lock("job").unwrap().holder("the holder").acquire().await.unwrap();
    let (ours, proxy) = behind_proxy(&etcd, "").await;
    proxy.delay(Duration::from_millis(1));
    let lock = ours.lock("job").unwrap().wait(Duration::from_secs(6));
    let waiting: Vec<_> = (0..WAITERS).map(|_| tokio::spawn(lock.acquire())).collect();
    let mut named = 0;
    for waited in join_all(waiting).await {
        let error = waited.unwrap().unwrap_err();
        let Error::WaitTimeout { holder, .. } = &error else { panic!("{error}") };
        let holder = holder.as_ref().and_then(|holder| holder.description.as_deref());
        named += usize::from(holder == Some("the holder"));
    }
    println!("{named} of {WAITERS} heard of the holder");
    assert!(named > 0);
    assert!(held.is_valid());
}
