//! What a commit that is only made while a lock is held costs beside a plain one. Both are made in
//! turns, on one connection, after an update of one row. Private servers with their data in memory
//! share a core with this program: no disk, no network and no choice of cores hides the check.
//!
//! `cargo run --profile counts -p distlock-bench --features mysql,postgres --example commit`

use distlock::{
    Held,
    sql::{CommitHeld, GivenTransaction},
};
use lock_bench::{Failure, Ratio, Rounds};
use lock_core::Clock;
use lock_lab::{AnyStore, MariaDb, Postgres, Server};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sqlx::{
    Connection, Database, Executor, IntoArguments, MySql, Sqlite, Transaction, query, raw_sql,
};

const ROUNDS: usize = 20;
/// Commits of each kind in a round.
const EACH: usize = 300;
const TABLE: &str = "CREATE TABLE stock (amount INT); INSERT INTO stock VALUES (0)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    share_one_core()?;
    let postgres = Postgres::builder().in_memory().start().await?;
    compare::<sqlx::Postgres>("PostgreSQL", &postgres.url(), "BEGIN", Some(&postgres)).await?;
    let mariadb = MariaDb::builder().in_memory().start().await?;
    compare::<MySql>("MariaDB", &mariadb.url(), "BEGIN", Some(&mariadb)).await?;
    let file = AnyStore::open_in_memory("sqlite").await;
    compare::<Sqlite>("SQLite", &file.url(), "BEGIN IMMEDIATE", None).await
}

/// Servers that are started later are kept there, too.
fn share_one_core() -> Result<(), Failure> {
    let allowed = sched_getaffinity(None)?;
    let mut last = CpuSet::new();
    last.set((0..CpuSet::MAX_CPU).rfind(|core| allowed.is_set(*core)).unwrap_or_default());
    Ok(sched_setaffinity(None, &last)?)
}

/// Prints how many statements the server has counted per commit, the medians, and their ratio with
/// the least and the greatest of the rounds.
async fn compare<D: Program>(
    what: &str,
    url: &str,
    begin: &'static str,
    server: Option<&Server>,
) -> Result<(), Failure>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    for<'c> GivenTransaction<'c>: From<Transaction<'c, D>>,
{
    let guard = distlock::connect(url).await?.lock("stock")?.acquire().await?;
    let mut connection = D::Connection::connect(url).await?;
    raw_sql(TABLE).execute(&mut connection).await?;
    for held in [None, Some(&*guard)] {
        commits::<D>(&mut connection, begin, held).await?;
        if let Some(server) = server {
            let before = server.counters().await?;
            commits::<D>(&mut connection, begin, held).await?;
            let since = server.counters().await?.since(&before);
            // MariaDB counts a prepared statement as its own kind, too.
            let sent = since.iter().filter(|(what, _)| what.starts_with("cmd."));
            let sent = sent.filter(|(what, _)| *what != "cmd.stmt_execute");
            let sent = sent.map(|(_, count)| count).sum::<u64>();
            println!("{what}: {:.2} statements", sent as f64 / EACH as f64);
        }
    }
    let [mut plain, mut checked, mut ratios] = [(); 3].map(|()| Rounds::default());
    for round in 0..ROUNDS {
        for is_checked in [round % 2 == 1, round % 2 == 0] {
            let held = is_checked.then_some(&*guard);
            let median = commits::<D>(&mut connection, begin, held).await?;
            if is_checked { &mut checked } else { &mut plain }.0.push(median);
        }
        ratios.0.push(checked.0[round] / plain.0[round]);
    }
    let [plain, checked, ratio] = [plain, checked, ratios].map(|rounds| Ratio::of(&rounds));
    if let (Some(plain), Some(checked), Some(ratio)) = (plain, checked, ratio) {
        let ratio = format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high);
        println!("{what}: {:.0} and {:.0} us, x {ratio}", plain.median, checked.median);
    }
    Ok(guard.release().await?)
}

/// The median of a round in microseconds.
async fn commits<D: Program>(
    connection: &mut D::Connection,
    begin: &'static str,
    held: Option<&Held>,
) -> Result<f64, Failure>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    for<'c> GivenTransaction<'c>: From<Transaction<'c, D>>,
{
    let mut times = Vec::with_capacity(EACH);
    for _ in 0..EACH {
        let started = Clock::Boot.now();
        let mut transaction = connection.begin_with(begin).await?;
        query::<D>("UPDATE stock SET amount = amount + 1").execute(&mut *transaction).await?;
        match held {
            Some(held) => held.commit(transaction).await?,
            None => transaction.commit().await?,
        }
        times.push(Clock::Boot.now().since(started));
    }
    times.sort();
    Ok(times[EACH / 2].as_secs_f64() * 1e6)
}

/// A database whose statements have arguments.
trait Program: Database<Arguments: IntoArguments<Self>> {}
impl<D: Database<Arguments: IntoArguments<D>>> Program for D {}
