//! A process of a fleet: this program, started again.
//!
//! It says `ready BYTES` when it has warmed up: the memory of each lock that it keeps, from the
//! second on; 0 is not known. It plays a round for each line that it is told, and ends with its
//! stdin. Each turn is a line of numbers; a line with the processor time follows. `failed TEXT` is
//! the last line of one that cannot go on.

use std::{
    env, fs,
    io::{self, Write},
    process::ExitCode,
};

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{Failure, Turn, contender::all, cores, cpu, crew::Crew, job::Job};

/// The variable with the job of a process.
pub(crate) const JOB: &str = "DISTLOCK_BENCH_JOB";

/// Works as a process of a fleet, if a benchmark has started this program as one. Whoever calls
/// [`run`](crate::run()) calls this first in `main`.
pub fn child() -> Option<ExitCode> {
    let job = env::var(JOB).ok()?;
    match work(&job) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(failure) => {
            // A parent that is gone needs no reason.
            let text = serde_json::Value::from(failure.to_string());
            let _ = say(&format!("failed {text}"));
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
    let contender = all::named(&job.scheme, &job.url, &job.contender)?;
    // The first lock brings a session, and whatever else the others share.
    let first = job.held.min(1);
    let others = job.held - first;
    let mut crew = Crew::open(&*contender, job).await?;
    crew.hold(first).await?;
    let before = resident()?;
    crew.hold(others).await?;
    let each = resident()?.saturating_sub(before).checked_div(u64::from(others)).unwrap_or(0);
    crew.warm_up().await?;
    say(&format!("ready {each}"))?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while orders.next_line().await?.is_some() {
        let before = cpu::clients();
        let turns = crew.round().await?;
        let used = cpu::clients().saturating_sub(before);
        tell(&turns, used.as_nanos())?;
    }
    crew.close().await
}

/// Memory of this process in bytes.
fn resident() -> Result<u64, Failure> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("/proc/self/statm has no second number")? * 4096)
}

fn tell(turns: &[Turn], used: u128) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for turn in turns {
        writeln!(out, "{}", line(turn))?;
    }
    writeln!(out, "used {used}")?;
    out.flush()
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

fn line(turn: &Turn) -> String {
    let Turn { worker, name, shared, scheduled, asked, granted, releasing, released, token } = turn;
    let shared = u8::from(*shared);
    let times = format!("{scheduled} {asked} {granted} {releasing} {released}");
    let token = token.map(|token| format!(" {token}")).unwrap_or_default();
    format!("{worker} {name} {shared} {times}{token}")
}

/// Reads the line of a turn.
pub(crate) fn turn(line: &str) -> Option<Turn> {
    let numbers: Option<Vec<u64>> = line.split(' ').map(|number| number.parse().ok()).collect();
    let numbers = numbers?;
    let [worker, name, shared, scheduled, asked, granted, releasing, released, ref token @ ..] =
        numbers[..]
    else {
        return None;
    };
    let (worker, name) = (u32::try_from(worker).ok()?, u32::try_from(name).ok()?);
    let (shared, token) = (shared == 1, token.first().copied());
    Some(Turn { worker, name, shared, scheduled, asked, granted, releasing, released, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_read_as_it_was_told() {
        let mut one = Turn {
            worker: 3,
            name: 1,
            shared: true,
            scheduled: 10,
            asked: 11,
            granted: 12,
            releasing: 13,
            released: 14,
            token: Some(u64::MAX),
        };
        assert_eq!(turn(&line(&one)), Some(one));
        one.token = None;
        assert_eq!(turn(&line(&one)), Some(one));
        assert_eq!(turn("ready 0"), None);
    }
}
