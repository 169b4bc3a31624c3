//! Nothing of a server stays behind.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use lock_lab::{Postgres, Redis, is_gone, state_of};
use tempfile::TempDir;

use crate::{is_open, support::eventually};

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
    assert_eq!(home.metadata()?.mode() & 0o777, 0o700, "others must not read it");
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

/// Waits until a child process prints the facts of its server.
fn what_it_holds(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map_while(std::io::Result::ok).find_map(|line| {
        let (_, facts) = line.split_once("holding ")?;
        Some(facts.to_owned())
    });
    line.expect("the child says what it holds")
}

/// Each connection of a PostgreSQL is a process, in a group of its own.
#[tokio::test]
async fn a_kill_of_this_process_kills_all_of_a_postgres() -> Result {
    kill_the_holder_of_a_postgres("running").await
}

/// The kernel sends SIGHUP to the orphaned group of a stopped process, which has the watcher, too.
#[tokio::test]
async fn a_kill_of_this_process_kills_all_of_a_stopped_postgres() -> Result {
    kill_the_holder_of_a_postgres("stopped").await
}

async fn kill_the_holder_of_a_postgres(state: &str) -> Result {
    let mut parent = Command::new(env::current_exe()?)
        .args(["--exact", "cleanup::holds_a_postgres", "--include-ignored", "--nocapture"])
        .env(STATE, state)
        .stdout(Stdio::piped())
        .spawn()?;
    let line = what_it_holds(&mut parent);
    let (home, pids) = line.split_once(' ').unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() > 3 && !pids.iter().any(|pid| is_gone(*pid)), "{line}");
    let home = PathBuf::from(home);
    assert!(home.is_dir());
    parent.kill()?;
    parent.wait()?;
    eventually("the processes are gone", || pids.iter().all(|pid| is_gone(*pid))).await;
    eventually("the data is deleted", || !home.exists()).await;
    Ok(())
}

/// The variable that tells the killed process whether to stop the server.
const STATE: &str = "LOCK_LAB_STATE";

/// The process that the tests above kill.
#[tokio::test]
#[ignore = "only a part of a_kill_of_this_process_kills_all_of_a_postgres"]
async fn holds_a_postgres() {
    let Ok(state) = env::var(STATE) else { return };
    let postgres = Postgres::start().await.unwrap();
    let workers = "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend'";
    let pids = postgres.sql(workers).await.unwrap().replace('\n', " ");
    let home = fs::read_link(format!("/proc/{}/cwd", postgres.pid())).unwrap();
    if state == "stopped" {
        postgres.stop();
    }
    println!("holding {} {} {pids}", home.parent().unwrap().display(), postgres.pid());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_kill_of_this_process_kills_the_server() -> Result {
    let (_folder, program) = with_helper()?;
    let mut parent = Command::new(env::current_exe()?)
        .args(["--exact", "cleanup::holds_a_redis", "--include-ignored", "--nocapture"])
        .env(PROGRAM, program)
        .stdout(Stdio::piped())
        .spawn()?;
    let line = what_it_holds(&mut parent);
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

/// The variable that tells the killed process which program to start.
const PROGRAM: &str = "LOCK_LAB_PROGRAM";

/// The process that the test above kills.
#[tokio::test]
#[ignore = "only a part of a_kill_of_this_process_kills_the_server"]
async fn holds_a_redis() {
    let Some(program) = env::var_os(PROGRAM) else { return };
    let redis = Redis::builder().binary(program).start().await.unwrap();
    let (addr, pid, helper) = (redis.addr(), redis.pid(), helper_of(&redis));
    println!("holding {addr} {pid} {helper} {}", home_of(&redis).await.display());
    std::future::pending::<()>().await;
}
