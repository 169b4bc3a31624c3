//! What runs under valgrind, in a process of its own.

use std::env;

use tokio::task::JoinSet;

use crate::Failure;

/// The first argument of that process. Then: pairs, tasks.
pub const COMMAND: &str = "pairs";
/// The variable with the store's URL, which may have a password.
pub const URL: &str = "DISTLOCK_COUNTS_URL";

/// Acquires and releases this many times, by tasks on names of their own.
pub async fn run(pairs: u64, tasks: u64) -> Result<(), Failure> {
    let locks = distlock::connect(env::var(URL)?).await?;
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let lock = locks.lock(format!("counted-{task}"))?;
        running.spawn(async move {
            for _ in 0..pairs / tasks {
                lock.acquire().await?.release().await?;
            }
            Ok::<_, distlock::Error>(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    locks.close().await?;
    Ok(())
}
