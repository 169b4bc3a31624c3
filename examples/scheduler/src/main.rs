//! The documents' scheduled job: only the leader among several candidates works. When the job
//! fails, the leader resigns and campaigns again, so that another candidate can try. SIGINT and
//! SIGTERM also make it resign.
//!
//! `cargo run -p scheduler` plays three candidates in one process. With a URL, start it in several
//! terminals: `cargo run -p scheduler --features distlock/etcd -- etcd://127.0.0.1:2379`.

use std::{ops::ControlFlow, process::ExitCode, time::Duration};

use clap::Parser;
use distlock::{Election, Leading};
use tokio::task::JoinSet;

/// A job that runs on a schedule, and in one place only.
#[derive(Parser)]
struct Args {
    /// The store's URL.
    #[arg(default_value = "memory:")]
    url: String,
    /// How many candidates this process has.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    candidates: u32,
    /// After how many runs of the job it ends; 0 is never.
    #[arg(long, default_value_t = 12)]
    runs: u64,
    /// Milliseconds between two runs.
    #[arg(long, default_value_t = 100)]
    every: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match schedule(Args::parse()).await {
        Ok(end) => {
            println!("{end}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn schedule(args: Args) -> distlock::Result<String> {
    let locks = distlock::connect(&args.url).await?;
    let election = locks.election("scheduler")?;
    let watching = tokio::spawn(watch(election.clone()));
    // A signal gives the leadership back at once: the others need not wait for its TTL.
    let end = match locks.close_on_signal(work(&election, &args)).await? {
        Some(runs) => format!("done: the job ran {} times", runs?),
        None => "stopped by a signal, and resigned".to_owned(),
    };
    // The observer's stream ends with the connection.
    let _ = watching.await;
    Ok(end)
}

/// Runs candidates until the job has run often enough.
async fn work(election: &Election, args: &Args) -> distlock::Result<u64> {
    let (ran, mut runs) = tokio::sync::mpsc::channel(1);
    let mut candidates = JoinSet::new();
    for number in 1..=args.candidates {
        let name = format!("candidate {number} of process {}", std::process::id());
        let every = Duration::from_millis(args.every);
        candidates.spawn(candidate(election.clone(), name, every, ran.clone()));
    }
    let mut count = 0;
    while args.runs == 0 || count < args.runs {
        tokio::select! {
            Some(()) = runs.recv() => count += 1,
            // Only an error ends a candidate.
            Some(Ok(ended)) = candidates.join_next() => ended?,
        }
    }
    Ok(count)
}

/// Campaigns, works while it leads, and campaigns again: after a failed job, so that another
/// candidate can try, and after a lost leadership.
async fn candidate(
    election: Election,
    name: String,
    every: Duration,
    ran: tokio::sync::mpsc::Sender<()>,
) -> distlock::Result<()> {
    let lead = async |leading: Leading| {
        let why = lead(&leading, &name, every, &ran).await;
        println!("  {name} resigns: {why}");
        Ok(ControlFlow::Continue(()))
    };
    election.keep_running(&name, lead).await
}

/// Runs the job until it fails, and returns the reason. Dropped if the leadership is lost.
async fn lead(
    leading: &Leading,
    name: &str,
    every: Duration,
    ran: &tokio::sync::mpsc::Sender<()>,
) -> String {
    let mut schedule = tokio::time::interval(every);
    for run in 1..=3 {
        schedule.tick().await;
        // A job that writes to a resource passes the token: the resource refuses a leader that was
        // paused.
        println!("  {name}: run {run} with token {}", leading.token());
        if let Err(error) = leading.proclaim(format!("{name}, run {run}")).await {
            return error.to_string();
        }
        if ran.send(()).await.is_err() {
            return "nobody counts any more".to_owned();
        }
    }
    "the job failed".to_owned()
}

/// Prints each new leader.
async fn watch(election: Election) -> distlock::Result<()> {
    let mut observer = election.observe().await?;
    while let Some(now) = observer.next().await {
        match now? {
            Some(leader) => println!("leader: {}", String::from_utf8_lossy(&leader.value)),
            None => println!("leader: nobody"),
        }
    }
    Ok(())
}
