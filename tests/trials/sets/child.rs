//! One of the processes.

use std::process::ExitCode;

use distlock::Locks;

/// Variable that makes this program such a process. It contains the store's URL.
pub const URL: &str = "DISTLOCK_TEST_SETS_URL";
/// The order of the names.
pub const ORDER: &str = "DISTLOCK_TEST_SETS_ORDER";

/// The number of sets that the process locks.
pub const ROUNDS: &str = "DISTLOCK_TEST_SETS_ROUNDS";

const TASKS: usize = 8;
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Locks overlapping sets of names. Prints the first name of each set with its token.
pub fn lock_sets(url: &str) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let backwards = std::env::var(ORDER).is_ok_and(|order| order == "backwards");
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok());
    match runtime.block_on(work(url, backwards, rounds.expect("a number of rounds"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(url: &str, backwards: bool, rounds: usize) -> distlock::Result<()> {
    let locks = distlock::connect(url).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(one_task(locks.clone(), task, backwards, rounds / TASKS));
    }
    tasks.join_all().await.into_iter().collect::<distlock::Result<()>>()?;
    locks.close().await
}

async fn one_task(
    locks: Locks,
    task: usize,
    backwards: bool,
    rounds: usize,
) -> distlock::Result<()> {
    for round in 0..rounds {
        let first = (task + round) % NAMES.len();
        let mut names = [first, (first + 1) % NAMES.len(), (first + 2) % NAMES.len()];
        if backwards {
            names.reverse();
        }
        let set = locks.all(names.map(|n| NAMES[n]))?.acquire().await?;
        if let Some((name, token)) = set.tokens().next() {
            println!("{name} {token}");
        }
        set.release().await?;
    }
    Ok(())
}
