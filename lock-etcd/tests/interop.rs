//! One queue with Go's `concurrency.Mutex` and `etcdctl lock`.

use std::process::Stdio;

use lock_etcd::client::{Client, PutOptions};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::*;

#[tokio::test]
async fn an_entry_like_gos_stands_in_the_queue_like_ours() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let mut go = Client::connect([etcd.addr().to_string()], None).await.unwrap();
    let lease = go.lease_grant(60, None).await.unwrap().id();
    let key = format!("job/{lease:x}");
    // Go holds, our attempt waits.
    go.put(&*key, "", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    assert!(locks.lock("job").unwrap().try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 2).await;
    go.delete(&*key, None).await.unwrap();
    let guard = soon(waiting).await.unwrap().unwrap();
    // Our attempt holds, Go waits, and another attempt of ours waits behind it. Go uses its key
    // again.
    go.put(&*key, "", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 3).await;
    guard.release().await.unwrap();
    until_queued(&locks, "job", 2).await;
    assert!(!waiting.is_finished(), "it is Go's turn");
    go.lease_revoke(lease).await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// Starts `etcdctl lock NAME`. It prints its key when it holds the lock, and holds it until it is
/// killed.
fn etcdctl_lock(etcd: &lock_lab::Etcd, name: &str) -> Child {
    Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &etcd.addr().to_string(), "lock", "--ttl", "5", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn holds(etcdctl: &mut Child) -> String {
    let lines = BufReader::new(etcdctl.stdout.take().unwrap()).lines();
    tokio::pin!(lines);
    soon(lines.next_line()).await.unwrap().unwrap()
}

#[tokio::test]
async fn etcdctl_waits_for_us_and_we_wait_for_etcdctl() {
    let etcd = etcd().await;
    let locks = locks(&etcd.url()).await;
    let guard = locks.lock("job").unwrap().acquire().await.unwrap();
    let mut etcdctl = etcdctl_lock(&etcd, "job");
    until_queued(&locks, "job", 2).await;
    assert!(
        !locks
            .inspect("job")
            .await
            .unwrap()
            .iter()
            .any(|entry| { entry.attempt.is_none() && entry.holder.token == Some(guard.token()) })
    );
    let waiting = tokio::spawn(locks.lock("job").unwrap().acquire());
    until_queued(&locks, "job", 3).await;
    guard.release().await.unwrap();
    assert!(holds(&mut etcdctl).await.starts_with("job/"));
    assert!(!waiting.is_finished(), "it is etcdctl's turn");
    etcdctl.kill().await.unwrap();
    soon(waiting).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn any_name_but_one_with_a_slash_is_native() {
    let etcd = etcd().await;
    let locks = locks(&format!("{}?layout=native&prefix=/locks/", etcd.url())).await;
    let mut etcdctl = etcdctl_lock(&etcd, "/locks/an odd name%");
    assert!(holds(&mut etcdctl).await.starts_with("/locks/an odd name%/"));
    assert!(locks.lock("an odd name%").unwrap().try_acquire().await.unwrap().is_none());
    let error = locks.lock("a/b").unwrap().try_acquire().await.unwrap_err().to_string();
    assert!(error.contains("prefix"), "{error}");
}
