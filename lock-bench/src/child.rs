//! A process of a fleet: this program, started again.
//!
//! It plays a round for each line that it is told, and ends with its stdin.

use std::{
    env, fs,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{Failure, Turn, contender::all, cores, cpu, crew::Crew, job::Job};

/// The variable with the job of a process.
pub(crate) const JOB: &str = "DISTLOCK_BENCH_JOB";

/// A line that a process of a fleet says, in JSON.
#[derive(Serialize, Deserialize)]
pub(crate) enum Said {
    /// It has warmed up. The memory of each lock that it keeps, from the second on; 0 is not known.
    Ready(u64),
    /// The turns of a round, and the processor time of the process.
    Played(Vec<Turn>, Duration),
    /// The last words of one that cannot go on.
    Failed(String),
}

/// Works as a process of a fleet, if a benchmark has started this program as one. Whoever calls
/// [`run`](crate::run()) calls this first in `main`.
pub fn child() -> Option<ExitCode> {
    let job = env::var(JOB).ok()?;
    match work(&job) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(failure) => {
            // A parent that is gone needs no reason.
            let _ = say(&Said::Failed(failure.to_string()));
            Some(ExitCode::FAILURE)
        }
    }
}

fn work(job: &str) -> Result<(), Failure> {
    let job = serde_json::from_str(job).map_err(|error| format!("{JOB}: {error}"))?;
    cores::keep_clients()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(job))
}

async fn serve(job: Job) -> Result<(), Failure> {
    let contender = all::named(&job.scheme, &job.contender)?;
    // The first lock brings a session, and whatever else the others share.
    let first = job.held.min(1);
    let others = job.held - first;
    let mut crew = Crew::open(contender, job).await?;
    crew.hold(first).await?;
    let before = resident()?;
    crew.hold(others).await?;
    let each = resident()?.saturating_sub(before).checked_div(u64::from(others)).unwrap_or(0);
    crew.warm_up().await?;
    say(&Said::Ready(each))?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while orders.next_line().await?.is_some() {
        let before = cpu::clients();
        let turns = crew.round().await?;
        let used = cpu::clients().saturating_sub(before);
        say(&Said::Played(turns, used))?;
    }
    crew.close().await
}

/// Memory of this process in bytes.
fn resident() -> Result<u64, Failure> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("/proc/self/statm has no second number")? * 4096)
}

fn say(said: &Said) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut out, said)?;
    out.write_all(b"\n")?;
    out.flush()
}
