//! Nothing stays behind.

mod support;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use lock_lab::Redis;
use support::{eventually, is_gone, is_open, state_of};
use tempfile::TempDir;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// A Redis with a helper process, like the one that Redis starts to rewrite its file.
const WITH_HELPER: &str = r#"#!/bin/sh
sleep 1000 &
echo "helper $!"
exec redis-server "$@"
"#;

fn with_helper() -> std::io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("redis-with-helper");
    fs::write(&program, WITH_HELPER)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok((folder, program))
}

fn helper_of(redis: &Redis) -> u32 {
    redis.log().lines().find_map(|line| line.strip_prefix("helper ")?.parse().ok()).unwrap()
}

async fn home_of(redis: &Redis) -> PathBuf {
    let reply = redis.command(&[b"CONFIG", b"GET", b"dir"]).await.unwrap();
    reply.lines().nth(1).unwrap().into()
}

#[tokio::test]
async fn drop_kills_the_server_and_deletes_its_data() -> Result {
    let (_folder, program) = with_helper()?;
    let redis = Redis::builder().binary(program).start().await?;
    let (addr, pid, home) = (redis.addr(), redis.pid(), home_of(&redis).await);
    let helper = helper_of(&redis);
    assert!(is_open(addr) && home.is_dir() && !is_gone(helper));
    redis.stop(); // a stopped one too
    drop(redis);
    assert!(!is_open(addr));
    assert_eq!(state_of(pid), None);
    assert!(!home.exists());
    eventually("the helper is gone", || is_gone(helper)).await;
    Ok(())
}

#[tokio::test]
async fn a_panic_kills_the_server() -> Result {
    let (send, receive) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let redis = Redis::start().await.unwrap();
        send.send((redis.addr(), home_of(&redis).await)).unwrap();
        panic!("a test fails");
    });
    let (addr, home) = receive.await?;
    assert!(task.await.unwrap_err().is_panic());
    assert!(!is_open(addr));
    assert!(!home.exists());
    Ok(())
}

#[tokio::test]
async fn a_kill_of_this_process_kills_the_server() -> Result {
    let (_folder, program) = with_helper()?;
    let mut parent = Command::new(env::current_exe()?)
        .args(["--exact", "holds_a_redis", "--include-ignored", "--nocapture"])
        .env(PROGRAM, program)
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let line = lines.map_while(std::io::Result::ok).find_map(|line| {
        let (_, facts) = line.split_once("holding ")?;
        Some(facts.to_owned())
    });
    let line = line.expect("the child says what it holds");
    let [addr, pid, helper, home] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{line}")
    };
    let (addr, home): (SocketAddr, _) = (addr.parse()?, PathBuf::from(home));
    let (pid, helper) = (pid.parse()?, helper.parse()?);
    assert!(is_open(addr) && home.is_dir() && !is_gone(pid) && !is_gone(helper));
    parent.kill()?;
    parent.wait()?;
    eventually("the port is closed", || !is_open(addr)).await;
    eventually("the process is gone", || is_gone(pid)).await;
    eventually("the helper is gone", || is_gone(helper)).await;
    eventually("the data is deleted", || !home.exists()).await;
    Ok(())
}

/// Tells the process that is killed which program to start.
const PROGRAM: &str = "LOCK_LAB_PROGRAM";

/// The process that is killed in the test above.
#[tokio::test]
#[ignore = "only a part of a_kill_of_this_process_kills_the_server"]
async fn holds_a_redis() {
    let Some(program) = env::var_os(PROGRAM) else { return };
    let redis = Redis::builder().binary(program).start().await.unwrap();
    let (addr, pid, helper) = (redis.addr(), redis.pid(), helper_of(&redis));
    println!("holding {addr} {pid} {helper} {}", home_of(&redis).await.display());
    std::future::pending::<()>().await;
}
