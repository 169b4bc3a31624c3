//! Many locks that are lost at once.

use futures_util::future::join_all;
use lock_core::LossReason;

use crate::support::*;

#[tokio::test]
async fn a_thousand_losses_with_one_session_are_one_revocation_and_no_removals() {
    let etcd = etcd().await;
    let (locks, proxy) = behind_proxy(&etcd, "?ttl=10s").await;
    let acquired = join_all((0..1000).map(|n| locks.lock(format!("job{n}")).unwrap().acquire()));
    let guards: Vec<_> = acquired.await.into_iter().map(Result::unwrap).collect();
    proxy.refuse();
    for guard in &guards {
        assert_eq!(soon(guard.lost()).await, LossReason::Expired);
    }
    let before = etcd.counters().await.unwrap();
    // Each returns that it was lost, without a wait.
    let released = soon(join_all(guards.into_iter().map(|guard| guard.release()))).await;
    assert_eq!(released.len(), 1000);
    proxy.heal();
    until_clean(&etcd).await;
    until("the lease is gone", || async { etcd.leases().await.unwrap().is_empty() }).await;
    let asked = etcd.counters().await.unwrap().since(&before);
    assert!(asked.get("rpc.LeaseRevoke") <= 1, "{asked}");
    // Only lists of 64 names each remain.
    assert!(asked.get("rpc.DeleteRange") + asked.get("rpc.Txn") <= 1000 / 64, "{asked}");
    locks.lock("job0").unwrap().acquire().await.unwrap().release().await.unwrap();
}
