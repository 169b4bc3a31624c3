//! Nothing stays behind.

mod support;

use std::{
    env,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

use lock_lab::Redis;
use support::{eventually, is_open, state_of};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

async fn home_of(redis: &Redis) -> PathBuf {
    let reply = redis.command(&[b"CONFIG", b"GET", b"dir"]).await.unwrap();
    reply.lines().nth(1).unwrap().into()
}

#[tokio::test]
async fn drop_kills_the_server_and_deletes_its_data() -> Result {
    let redis = Redis::start().await?;
    let (addr, pid, home) = (redis.addr(), redis.pid(), home_of(&redis).await);
    assert!(is_open(addr) && home.is_dir());
    redis.stop(); // a stopped one too
    drop(redis);
    assert!(!is_open(addr));
    assert_eq!(state_of(pid), None);
    assert!(!home.exists());
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
    let mut parent = Command::new(env::current_exe()?)
        .args(["--exact", "holds_a_redis", "--include-ignored", "--nocapture"])
        .env("LOCK_LAB_PARENT", "1")
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let line = lines.map_while(std::io::Result::ok).find_map(|line| {
        let (_, facts) = line.split_once("holding ")?;
        Some(facts.to_owned())
    });
    let line = line.expect("the child says what it holds");
    let [addr, pid, home] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let (addr, pid, home): (SocketAddr, u32, _) =
        (addr.parse()?, pid.parse()?, PathBuf::from(home));
    assert!(is_open(addr) && home.is_dir());
    parent.kill()?;
    parent.wait()?;
    eventually("the port is closed", || !is_open(addr)).await;
    eventually("the process is gone", || matches!(state_of(pid), None | Some('Z'))).await;
    eventually("the data is deleted", || !home.exists()).await;
    Ok(())
}

/// The process that is killed in the test above.
#[tokio::test]
#[ignore = "only a part of a_kill_of_this_process_kills_the_server"]
async fn holds_a_redis() {
    if env::var_os("LOCK_LAB_PARENT").is_none() {
        return;
    }
    let redis = Redis::start().await.unwrap();
    println!("holding {} {} {}", redis.addr(), redis.pid(), home_of(&redis).await.display());
    std::future::pending::<()>().await;
}
