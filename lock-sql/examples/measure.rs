//! What locks in a database cost: how many a second, one after another and handed over, and what those
//! who wait ask for.
//!
//! ```text
//! cargo run --release -p lock-sql --all-features --example measure
//! ```

use std::time::Duration;

use lock_core::{Clock, Locks, StoreUrl};
use lock_lab::{MariaDb, Postgres, Server};
use lock_sql::{SqlConfig, SqlLock};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TIMES: u32 = 2000;
const CROWD: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    measure(&format!("sqlite:{}", directory.path().join("locks.db").display()), None).await?;
    let mariadb = MariaDb::start().await?;
    measure(&mariadb.url(), Some(&mariadb)).await?;
    let postgres = Postgres::start().await?;
    measure(&postgres.url(), Some(&postgres)).await
}

async fn connect(url: &str) -> Result<Locks, Failure> {
    Ok(Locks::new(SqlLock::connect(SqlConfig::from_url(&StoreUrl::parse(url)?)?).await?))
}

async fn measure(url: &str, server: Option<&Server>) -> Result<(), Failure> {
    let (here, there) = (connect(url).await?, connect(url).await?);
    println!("{}", here.guarantees().store);
    let alone = work(here.clone(), "alone");
    println!("  {:6.0} acquire and release per second, alone", rate(TIMES, alone).await?);
    let both =
        async { tokio::try_join!(work(here.clone(), "both"), work(there, "both")).map(drop) };
    println!("  {:6.0} handed over per second between two clients", rate(TIMES * 2, both).await?);
    if let Some(server) = server {
        println!("  {}", crowd(url, server, &here).await?);
    }
    Ok(())
}

async fn work(locks: Locks, name: &str) -> Result<(), Failure> {
    let lock = locks.lock(name)?;
    for _ in 0..TIMES {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

async fn rate(times: u32, work: impl Future<Output = Result<(), Failure>>) -> Result<f64, Failure> {
    let start = Clock::Boot.now();
    work.await?;
    Ok(f64::from(times) / Clock::Boot.now().since(start).as_secs_f64())
}

/// What 64 clients ask for that wait for one lock.
async fn crowd(url: &str, server: &Server, holder: &Locks) -> Result<String, Failure> {
    let guard = holder.lock("crowd")?.acquire().await?;
    let mut waiters = Vec::new();
    for place in 1..=CROWD {
        let locks = connect(url).await?;
        let acquire = locks.lock("crowd")?.acquire();
        waiters.push(tokio::spawn(async move { acquire.await?.release().await }));
        while holder.inspect("crowd").await?.len() <= place {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let before = server.counters().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let asked = server.counters().await?.since(&before).get("cmd.select") / 5;
    let start = Clock::Boot.now();
    guard.release().await?;
    for waiter in waiters {
        waiter.await??;
    }
    let took = Clock::Boot.now().since(start);
    Ok(format!("{asked:6} queries per second by {CROWD} clients that wait; all served in {took:?}"))
}
