//! Acquires and releases: what runs under valgrind. `pairs PAIRS TASKS` does so on the store whose
//! URL is in `DISTLOCK_COUNTS_URL`. Without arguments it names the stores that it has.

use std::{env, error::Error, process::ExitCode};

use distlock::STORES;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: pairs [PAIRS TASKS]";
/// The variable with the store's URL, which may have a password.
const URL: &str = "DISTLOCK_COUNTS_URL";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pairs: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            for store in STORES.iter().filter(|store| store.compiled_in) {
                println!("{}", store.scheme);
            }
            Ok(())
        }
        [pairs, tasks] => acquire(pairs.parse()?, tasks.parse()?).await,
        _ => Err(USAGE.into()),
    }
}

/// Acquires and releases this many times, by tasks on names of their own.
async fn acquire(pairs: u64, tasks: u64) -> Result<(), Failure> {
    let locks = distlock::connect(env::var(URL).map_err(|error| format!("{URL}: {error}"))?);
    let locks = locks.await?;
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
