//! Installed programs, and missing ones.

use std::process::Command;

use lock_lab::{Etcd, LabError, MariaDb, Postgres, Redis, RedisSentinels, ZooKeeper, etcdctl};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[test]
fn every_server_tells_that_it_is_there() -> Result {
    Redis::installed()?;
    RedisSentinels::builder().installed()?;
    Etcd::installed()?;
    ZooKeeper::installed()?;
    MariaDb::installed()?;
    Ok(Postgres::installed()?)
}

#[test]
fn every_server_tells_what_is_missing() {
    let answers = [
        (Redis::builder().binary("no-such").installed(), "redis-server"),
        (Etcd::builder().binary("no-such").installed(), "etcd-server"),
        (ZooKeeper::builder().binary("no-such").installed(), "default-jre-headless"),
        (MariaDb::builder().binary("no-such").installed(), "mariadb-server-core"),
        (Postgres::builder().binary("no-such").installed(), "postgresql"),
    ];
    for (answer, package) in answers {
        let error = answer.expect_err("there is no such program");
        let expected = format!("no-such was not found; install it with: apt-get install {package}");
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, LabError::Missing { .. }));
    }
}

#[test]
fn the_client_that_is_found_runs() -> Result {
    let etcdctl = Command::new(etcdctl()?).env("ETCDCTL_API", "3").arg("version").output()?;
    assert!(String::from_utf8(etcdctl.stdout)?.starts_with("etcdctl version: 3."));
    Ok(())
}
