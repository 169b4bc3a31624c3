//! Servers that do not start.

use lock_lab::{Etcd, LabError, Redis, ZooKeeper};

#[tokio::test]
async fn a_missing_program_names_the_package() {
    let redis = Redis::builder().binary("no-such-redis").start().await.unwrap_err();
    let expected = "no-such-redis was not found; install it with: apt-get install redis-server";
    assert_eq!(redis.to_string(), expected);
    let etcd = Etcd::builder().binary("/nowhere/etcd").start().await.unwrap_err();
    assert!(matches!(&etcd, LabError::Missing { binary, .. } if binary == "/nowhere/etcd"));
    let zookeeper = ZooKeeper::builder().binary("no-such-java").start().await.unwrap_err();
    assert!(matches!(zookeeper, LabError::Missing { .. }));
}

#[tokio::test]
async fn the_error_shows_the_end_of_the_log() {
    let redis = Redis::builder().arg("--nonsense").arg("1").start().await.unwrap_err();
    assert!(redis.to_string().contains("Bad directive"), "{redis}");
    let etcd = Etcd::builder().arg("--nonsense").start().await.unwrap_err();
    assert!(etcd.to_string().contains("flag provided but not defined"), "{etcd}");
    let zookeeper = ZooKeeper::builder().setting("initLimit", "none").start().await.unwrap_err();
    assert!(zookeeper.to_string().contains("NumberFormatException"), "{zookeeper}");
    let LabError::Start { log, .. } = zookeeper else { panic!("not a failed start") };
    assert!(log.lines().count() <= 30, "{log}");
}
