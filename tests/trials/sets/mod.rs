//! Two processes lock overlapping sets of names, given in opposite orders, many times: there is no
//! deadlock, and nothing is left behind.

mod child;

use std::{
    process::{ExitCode, Stdio},
    time::Duration,
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use libtest_mimic::Trial;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
};

use crate::support;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The longest time without a set in either process, and for the end of both. A deadlock would last
/// for ever; a busy machine is slow, but goes on.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs as one of the processes if the environment says so.
pub fn lock_sets() -> Option<ExitCode> {
    let url = std::env::var_os(child::URL)?;
    Some(child::lock_sets(&url.to_string_lossy()))
}

pub fn trials() -> Vec<Trial> {
    let trials = support::stores().map(|store| {
        Trial::test(format!("sets::{store}::overlapping_sets_in_opposite_orders"), move || {
            let runtime = tokio::runtime::Runtime::new()?;
            Ok(runtime.block_on(opposite_orders(store))?)
        })
    });
    trials.collect()
}

async fn opposite_orders(store: &str) -> Result<(), Failure> {
    let server = support::Store::open(store).await;
    let rounds = rounds(store);
    let mut children =
        [start(&server.url(), "forwards", rounds)?, start(&server.url(), "backwards", rounds)?];
    let outputs = children.each_mut().map(|child| lines(child.stdout.take().expect("a pipe")));
    // Reads both at the same time: a process blocks when its pipe is full.
    let mut said = stream::select_all(outputs);
    let mut tokens = Vec::new();
    while let Some(line) = soon("a set", said.next()).await? {
        tokens.push(line?);
    }
    for mut child in children {
        if !soon("the end of a process", child.wait()).await??.success() {
            return Err("a process failed; it says why above".into());
        }
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

/// The lines of an output, as they come.
fn lines(output: ChildStdout) -> BoxStream<'static, std::io::Result<String>> {
    let lines = BufReader::new(output).lines();
    Box::pin(stream::try_unfold(lines, async |mut lines| {
        Ok(lines.next_line().await?.map(|line| (line, lines)))
    }))
}

async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Failure> {
    let waited = tokio::time::timeout(LIMIT, wait).await;
    waited.map_err(|_| format!("no sign of {what} for {LIMIT:?}: a deadlock").into())
}

/// The number of sets that each process locks. It is lower on stores where a step is a transaction
/// and a waiter may have to poll again and again.
fn rounds(store: &str) -> usize {
    match store {
        "sqlite" | "postgres" | "mysql" => support::size(200, 1_000),
        _ => support::size(1_000, 5_000),
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
