//! Guarded writes: the store checks the lock's own condition together with the write. While the
//! lock is held, the write succeeds. After an operator has revoked the lock, the store refuses the
//! same write, although the late holder still believes in its lock.
//!
//! `cargo run -p guarded -- redis://127.0.0.1:6379`, or `--features etcd -- etcd://127.0.0.1:2379`

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod address;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use std::process::ExitCode;

use distlock::LockGuard;

/// Any error, printed by `main`.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: guarded URL, of etcd, Redis or ZooKeeper");
        return ExitCode::from(2);
    };
    match sell(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn sell(url: &str) -> Result<(), Failure> {
    let (locks, operator) = (distlock::connect(url).await?, distlock::connect(url).await?);
    let guard = locks.lock("guarded-stock")?.acquire().await?;
    let written = write(url, &guard, "41").await?;
    println!("while the lock is held: {}", said(written));

    let queue = operator.inspect("guarded-stock").await?;
    for attempt in queue.iter().filter_map(|entry| entry.attempt) {
        operator.revoke("guarded-stock", attempt).await?;
    }
    let late = write(url, &guard, "40").await?;
    println!("after it was revoked: {}", said(late));
    locks.close().await?;
    operator.close().await?;
    match (written, late) {
        (true, false) => Ok(()),
        _ => Err("a guarded write did not do what it should".into()),
    }
}

fn said(written: bool) -> &'static str {
    if written { "written" } else { "refused by the store" }
}

/// Writes the stock if the store confirms that the guard still holds its lock.
async fn write(url: &str, guard: &LockGuard, stock: &str) -> Result<bool, Failure> {
    let _ = (guard, stock);
    match guard.store() {
        #[cfg(feature = "etcd")]
        "etcd" => etcd::write(url, guard, stock).await,
        #[cfg(feature = "redis")]
        "redis" => redis::write(url, guard, stock).await,
        #[cfg(feature = "zookeeper")]
        "zookeeper" => zookeeper::write(url, guard, stock).await,
        other => Err(format!("no guarded write on {other} at {url}").into()),
    }
}
