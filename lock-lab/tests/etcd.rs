//! A private etcd.

use lock_lab::{Etcd, state_of};

use crate::{is_open, support::eventually, timed_out};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn reads_writes_and_deletes_keys() -> Result {
    let etcd = Etcd::start().await?;
    assert_eq!(etcd.url(), format!("etcd://{}", etcd.addr()));
    for key in ["lock/b", "lock/a", "lock0"] {
        etcd.put(key.as_bytes(), b"v").await?;
    }
    assert_eq!(etcd.keys().await?, [&b"lock/a"[..], b"lock/b", b"lock0"]);
    assert_eq!(etcd.delete_prefix(b"lock/").await?, 2);
    assert_eq!(etcd.delete(b"missing").await?, 0);
    assert_eq!(etcd.keys().await?, [b"lock0"]);
    assert_eq!(etcd.delete_prefix(b"").await?, 1);
    assert!(etcd.keys().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn kill_and_restart_keep_the_data() -> Result {
    let etcd = Etcd::start().await?;
    let (addr, pid) = (etcd.addr(), etcd.pid());
    etcd.put(b"k", b"v").await?;
    etcd.kill();
    assert!(!is_open(addr));
    etcd.restart().await?;
    assert_eq!((etcd.addr(), etcd.pid() == pid), (addr, false));
    assert_eq!(etcd.keys().await?, [b"k"]);
    Ok(())
}

#[tokio::test]
async fn stops_and_resumes() -> Result {
    let etcd = Etcd::builder().in_memory().start().await?;
    etcd.stop();
    eventually("the process is stopped", || state_of(etcd.pid()) == Some('T')).await;
    let silence = etcd.put(b"k", b"v").await.unwrap_err();
    assert!(timed_out(&silence), "{silence}");
    etcd.resume();
    etcd.put(b"k", b"v").await?;
    Ok(())
}

#[tokio::test]
async fn compaction_forgets_history_once() -> Result {
    let etcd = Etcd::start().await?;
    etcd.put(b"k", b"1").await?;
    etcd.put(b"k", b"2").await?;
    assert_eq!(etcd.compact().await?, etcd.revision().await?);
    let error = etcd.compact().await.unwrap_err();
    assert!(error.to_string().contains("compacted"), "{error}");
    Ok(())
}

#[tokio::test]
async fn counts_what_clients_do() -> Result {
    let etcd = Etcd::start().await?;
    let before = etcd.counters().await?;
    etcd.put(b"a", b"1").await?;
    etcd.put(b"b", b"1").await?;
    etcd.keys().await?;
    let after = etcd.counters().await?.since(&before);
    let expected = ["rpc.Put", "msg.Put", "sent.Put", "keys", "proposals"];
    for key in expected {
        assert_eq!(after.get(key), 2, "{key} in {after}");
    }
    assert_eq!(after.get("rpc.Range"), 1);
    assert_eq!(after.get("rpc.LeaseLeases"), 0, "the asking itself is left out");
    assert_eq!((after.get("leases"), etcd.leases().await?.len()), (0, 0));
    assert!(etcd.revoke(7).await.unwrap_err().to_string().contains("lease not found"));
    Ok(())
}
