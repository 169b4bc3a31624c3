//! Two processes lock overlapping sets of names, given in opposite orders, many times: there is no
//! deadlock, and nothing is left behind.

mod child;
#[path = "../support/mod.rs"]
mod support;

use std::{process::Stdio, time::Duration};

use libtest_mimic::{Arguments, Trial};
use tokio::process::{Child, Command};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Longer than the test needs. A deadlock would last for ever.
const LIMIT: Duration = Duration::from_secs(240);

fn main() -> std::process::ExitCode {
    if let Some(url) = std::env::var_os(child::URL) {
        return child::lock_sets(&url.to_string_lossy());
    }
    let arguments = Arguments::from_args();
    let trials = support::stores().map(|store| {
        Trial::test(format!("{store}::overlapping_sets_in_opposite_orders"), move || {
            let runtime = tokio::runtime::Runtime::new()?;
            Ok(runtime.block_on(opposite_orders(store))?)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

async fn opposite_orders(store: &str) -> Result<(), Failure> {
    let server = support::Store::open(store).await;
    let rounds = rounds(store);
    let children =
        [start(&server.url(), "forwards", rounds)?, start(&server.url(), "backwards", rounds)?];
    // Reads both at the same time: a process blocks when its pipe is full.
    let outputs = futures_util::future::join_all(children.map(Child::wait_with_output));
    let outputs = tokio::time::timeout(LIMIT, outputs).await;
    let mut tokens = Vec::new();
    for output in outputs.map_err(|_| format!("not done after {LIMIT:?}: a dead lock"))? {
        let output = output?;
        let said = String::from_utf8(output.stdout)?;
        if !output.status.success() {
            return Err(format!("a process failed: {said}").into());
        }
        tokens.extend(said.lines().map(str::to_owned));
    }
    let sets = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    if (sets, tokens.len()) != (2 * rounds, sets) {
        return Err(format!("{sets} sets, {} different tokens", tokens.len()).into());
    }
    let locks = support::connect(&server.url()).await;
    let left = locks.names("").await?;
    if !left.is_empty() {
        return Err(format!("left in the store: {left:?}").into());
    }
    Ok(())
}

/// The number of sets that each process locks. It is lower on stores where a step is a transaction
/// and a waiter may have to poll again and again.
fn rounds(store: &str) -> usize {
    match store {
        "sqlite" | "postgres" | "mysql" => 1_000,
        _ => 5_000,
    }
}

fn start(url: &str, order: &str, rounds: usize) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .env(child::URL, url)
        .env(child::ORDER, order)
        .env(child::ROUNDS, rounds.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}
