//! Servers that do not start.

use std::{fs, os::unix::fs::PermissionsExt};

use lock_lab::{Etcd, LabError, MariaDb, Postgres, Redis, ZooKeeper};

#[tokio::test]
async fn a_missing_program_names_the_package() {
    let redis = Redis::builder().binary("no-such-redis").start().await.unwrap_err();
    let expected = "no-such-redis was not found; install it with: apt-get install redis-server";
    assert_eq!(redis.to_string(), expected);
    let etcd = Etcd::builder().binary("/nowhere/etcd").start().await.unwrap_err();
    assert!(matches!(&etcd, LabError::Missing { binary, .. } if binary == "/nowhere/etcd"));
    let zookeeper = ZooKeeper::builder().binary("no-such-java").start().await.unwrap_err();
    assert!(matches!(zookeeper, LabError::Missing { .. }));
    let maria = MariaDb::builder().binary("no-such-maria").start().await.unwrap_err();
    assert!(maria.to_string().ends_with("apt-get install mariadb-server-core"), "{maria}");
    let postgres = Postgres::builder().binary("no-such-postgres").start().await.unwrap_err();
    assert!(postgres.to_string().ends_with("apt-get install postgresql"), "{postgres}");
}

#[tokio::test]
async fn the_error_shows_the_end_of_the_log() {
    let redis = Redis::builder().arg("--nonsense").arg("1").start().await.unwrap_err();
    assert!(redis.to_string().contains("Bad directive"), "{redis}");
    let etcd = Etcd::builder().arg("--nonsense").start().await.unwrap_err();
    assert!(etcd.to_string().contains("flag provided but not defined"), "{etcd}");
    let maria = MariaDb::builder().arg("--nonsense").start().await.unwrap_err();
    assert!(maria.to_string().contains("unknown option '--nonsense'"), "{maria}");
    let postgres = Postgres::builder().arg("--nonsense=1").start().await.unwrap_err();
    assert!(postgres.to_string().contains("unrecognized configuration parameter"), "{postgres}");
    let zookeeper = ZooKeeper::builder().setting("initLimit", "none").start().await.unwrap_err();
    assert!(zookeeper.to_string().contains("NumberFormatException"), "{zookeeper}");
    let LabError::Start { log, .. } = zookeeper else { panic!("not a failed start") };
    assert!(log.lines().count() <= 30, "{log}");
}

#[tokio::test]
async fn every_server_tells_that_its_port_is_taken() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port={}", holder.local_addr().unwrap().port());
    let maria = MariaDb::builder().in_memory().arg(&port).start().await.unwrap_err();
    assert!(maria.to_string().contains("Address already in use"), "{maria}");
    let postgres = Postgres::builder().in_memory().arg(&port).start().await.unwrap_err();
    assert!(postgres.to_string().contains("Address already in use"), "{postgres}");
}

/// A Redis that finds its port taken at the first start.
const UNLUCKY: &str = r#"#!/bin/sh
if mkdir "$0.once"; then echo "bind: Address already in use"; exit 1; fi
exec redis-server "$@"
"#;

#[tokio::test]
async fn a_taken_port_is_no_failure() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("unlucky-redis");
    fs::write(&program, UNLUCKY)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let redis = Redis::builder().binary(&program).start().await?;
    assert_eq!(redis.command(&[b"PING"]).await?, "PONG");
    assert!(folder.path().join("unlucky-redis.once").is_dir(), "it was unlucky first");
    Ok(())
}

#[tokio::test]
async fn a_port_that_stays_taken_is_a_failure_in_the_end() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", holder.local_addr().unwrap());
    let etcd = Etcd::builder().arg("--listen-client-urls").arg(url).start().await.unwrap_err();
    assert!(etcd.to_string().contains("address already in use"), "{etcd}");
}
