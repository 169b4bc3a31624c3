//! An etcd whose quota is used up.

use lock_core::Error;
use lock_lab::Etcd;

use crate::support::*;

#[tokio::test]
async fn people_get_in_to_look_and_are_told_what_to_do() {
    let quota = ["--quota-backend-bytes", "16777216"];
    let builder = Etcd::builder().in_memory().arg(quota[0]).arg(quota[1]);
    let etcd = builder.start().await.unwrap();
    let before = locks(&etcd.url()).await;
    let guard = before.lock("job").unwrap().acquire().await.unwrap();
    let mut puts = 0;
    while etcd.put(b"fill", &[b'x'; 1 << 20]).await.is_ok() {
        puts += 1;
        assert!(puts < 100, "it is never full");
    }
    let after = locks(&etcd.url()).await;
    assert_eq!(after.inspect("job").await.unwrap().len(), 1);
    let refused = after.lock("other").unwrap().acquire().await.unwrap_err();
    let is_said = refused.to_string().contains("alarm disarm");
    assert!(matches!(refused, Error::Rejected { .. }) && is_said, "{refused}");
    guard.release().await.unwrap();
    assert!(after.inspect("job").await.unwrap().is_empty());
}
