//! A batch worker of a bank with accounts in files. Any number of workers share the folder. A
//! transfer locks two accounts together, and reads rates that must not change meanwhile. Statements
//! go through a gateway with three lines. A job that waits or takes too long is given up and
//! reported.
//!
//! ```text
//! cargo run -p worker -- sqlite:locks.db bank --log debug
//! ```
//!
//! Files cannot refuse a late writer. The table of the example `service` does.

use std::{
    fs::{self, File},
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use distlock::{Error, Locks};
use futures_util::{StreamExt, stream};
use tokio::time::{sleep, timeout};
use tracing::{Instrument, Level, debug, info_span, warn};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ACCOUNTS: u64 = 5;
/// The lines of the gateway; a long statement takes two.
const LINES: u32 = 3;
/// Duration of the slow part of each job.
const SLOW: Duration = Duration::from_millis(5);

/// One of the workers.
#[derive(Parser)]
struct Args {
    /// The store of the locks, by URL.
    store: String,
    /// The folder of the bank, which all workers share.
    bank: PathBuf,
    /// How many jobs there are.
    #[arg(long, default_value_t = 100)]
    jobs: u64,
    /// How many of them are done at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    at_once: u16,
    /// Milliseconds that a job waits for each of its locks.
    #[arg(long, default_value_t = 10_000)]
    wait: u64,
    /// Milliseconds that a job takes in all.
    #[arg(long, default_value_t = 30_000)]
    limit: u64,
    /// What is logged: error, warn, info, debug or trace.
    #[arg(long, default_value_t = Level::WARN)]
    log: Level,
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let args = Args::parse();
    let colours = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_max_level(args.log).with_ansi(colours);
    log.with_writer(io::stderr).init();
    match work(args).await {
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

async fn work(args: Args) -> Result<String, Failure> {
    let locks = distlock::connect(&args.store).await?;
    let bank =
        Bank { locks: locks.clone(), folder: args.bank, wait: Duration::from_millis(args.wait) };
    let limit = Duration::from_millis(args.limit);
    // All jobs run in one task, so dropping it drops every job.
    let batch = async {
        bank.open().await?;
        let jobs = stream::iter(0..args.jobs).map(|job| bank.try_job(job, limit));
        let done: Vec<_> = jobs.buffer_unordered(args.at_once.into()).collect().await;
        let done: Vec<bool> = done.into_iter().collect::<Result<_, Failure>>()?;
        Ok(format!("{} of {} jobs done", done.iter().filter(|done| **done).count(), args.jobs))
    };
    // A signal drops the jobs: they leave their queues, and give back what they hold.
    locks.close_on_signal(batch).await?.unwrap_or_else(|| Ok("stopped".to_owned()))
}

struct Bank {
    locks: Locks,
    folder: PathBuf,
    wait: Duration,
}

impl Bank {
    /// Opens the accounts, unless another worker has opened them.
    async fn open(&self) -> Result<(), Failure> {
        let open = |_| async {
            fs::create_dir_all(&self.folder)?;
            if self.read("sell").is_err() {
                (0..ACCOUNTS).try_for_each(|account| self.write(&name(account), 100))?;
                self.write("buy", 0)?;
                self.write("sell", 2)?;
            }
            Ok(())
        };
        self.locks.lock("bank/rates")?.run_fallible(open).await
    }

    /// Returns whether the job was done in time.
    async fn try_job(&self, job: u64, limit: Duration) -> Result<bool, Failure> {
        let given_up = match timeout(limit, self.job(job)).instrument(info_span!("job", job)).await
        {
            Ok(Ok(())) => return Ok(true),
            Ok(Err(error)) => match error.downcast::<Error>() {
                Ok(error) if error.is_busy() || error.is_lost() => error.to_string(),
                Ok(error) => return Err(error),
                Err(error) => return Err(error),
            },
            // The job was dropped at its current step.
            Err(_) => format!("not done within {limit:?}"),
        };
        warn!(job, "given up: {given_up}");
        Ok(false)
    }

    async fn job(&self, job: u64) -> Result<(), Failure> {
        match job % 8 {
            0 => self.publish_rates(job).await,
            1 => self.send_statement(1).await,
            2 => self.send_statement(2).await,
            _ => self.transfer(job % ACCOUNTS, (job + 1 + job / 8 % 4) % ACCOUNTS).await,
        }
    }

    /// Moves money between two accounts, at the same time as other transfers that read the rates.
    async fn transfer(&self, from: u64, to: u64) -> Result<(), Failure> {
        let (from, to) = (name(from), name(to));
        let both = self.locks.all([format!("bank/{from}"), format!("bank/{to}")])?.wait(self.wait);
        let rates = self.locks.shared("bank/rates")?.wait(self.wait);
        let transfer = |_| async {
            let (left, there) = (self.read(&from)?, self.read(&to)?);
            let buy = self.read("buy")?;
            sleep(SLOW).await;
            let sell = self.read("sell")?;
            if sell != buy + 2 {
                return Err(format!("the rates {buy} and {sell} are not of the same time").into());
            }
            debug!(from, to, left, there, "transfer");
            // No await in between, so a dropped job has written both accounts or neither.
            self.write(&from, left - 1)?;
            self.write(&to, there + 1)
        };
        rates.run_fallible(|_| both.run_fallible(transfer)).await
    }

    async fn publish_rates(&self, buy: u64) -> Result<(), Failure> {
        let publish = |_| async move {
            self.write("buy", buy as i64)?;
            self.write("sell", buy as i64 + 2)
        };
        self.locks.lock("bank/rates")?.wait(self.wait).run_fallible(publish).await
    }

    /// The gateway rejects a statement that finds no line free. The permits prevent it.
    async fn send_statement(&self, lines: u32) -> Result<(), Failure> {
        let send = |_| async {
            let line = |number| {
                let line = File::create(self.folder.join(format!("line-{number}"))).ok()?;
                line.try_lock().is_ok().then_some(line)
            };
            let taken: Vec<_> = (1..=LINES).filter_map(line).take(lines as usize).collect();
            if taken.len() < lines as usize {
                return Err("the gateway has no line free".into());
            }
            sleep(SLOW).await;
            Ok(())
        };
        self.locks.semaphore("bank/gateway", LINES)?.wait(self.wait).run_many(lines, send).await?
    }

    fn read(&self, file: &str) -> Result<i64, Failure> {
        Ok(fs::read_to_string(self.folder.join(file))?.parse()?)
    }

    fn write(&self, file: &str, number: i64) -> Result<(), Failure> {
        // The rename is one step, so that no process reads half a number.
        let new = self.folder.join(format!("{file}.new"));
        fs::write(&new, number.to_string())?;
        Ok(fs::rename(new, self.folder.join(file))?)
    }
}

fn name(account: u64) -> String {
    format!("account-{account}")
}
