//! A web service with several replicas: one of them does a job, the others stand by. Each replica
//! reports which one leads. The job's table refuses a late leader. At SIGTERM a replica gets no
//! more requests and finishes the current run. Then the next one leads.
//!
//! ```text
//! cargo run -p service -- sqlite:locks.db runs.db a 127.0.0.1:8001
//! cargo run -p service -- sqlite:locks.db runs.db b 127.0.0.1:8002
//! curl http://127.0.0.1:8001/leader
//! ```

use std::{net::SocketAddr, ops::ControlFlow, path::PathBuf, process::ExitCode, time::Duration};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use clap::Parser;
use distlock::{Election, Error, FencingToken, Leading, Locks};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{oneshot, watch},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Time between two runs of the job.
const EVERY: Duration = Duration::from_millis(500);
/// Longest wait for the store to be there, for the table to be free, and for the last run to end.
const PATIENCE: Duration = Duration::from_secs(25);

/// One replica of a service.
#[derive(Parser)]
struct Args {
    /// The store of the locks, by URL.
    store: String,
    /// The file of the table, which all replicas share.
    table: PathBuf,
    /// What the replica is called.
    name: String,
    /// Where it listens; port 0 is a free one.
    listen: SocketAddr,
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    match serve(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(Args { store, table, name, listen }: Args) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    // The store may start at the same time as the service.
    let locks = distlock::connect(&store).retry(PATIENCE).await?;
    let (election, table) = (locks.election("service/job")?, open(table).await?);
    let (end, ending) = watch::channel(false);
    let replica = Replica { name, locks: locks.clone(), election, table, ending };
    let listener = TcpListener::bind(listen).await?;
    println!("listens on http://{}", listener.local_addr()?);
    let (drained, shut) = oneshot::channel::<()>();
    let http = axum::serve(listener, routes(replica.clone()));
    let http = tokio::spawn(http.with_graceful_shutdown(async { drop(shut.await) }).into_future());
    let mut job = tokio::spawn(replica.job());
    tokio::select! {
        _ = terminate.recv() => {}
        // Only an error ends the job by itself.
        ended = &mut job => return Ok(ended??),
    }
    // The replica reports that it is not ready until the last run has ended.
    end.send_replace(true);
    let left = locks.drain(PATIENCE).await?;
    job.await??;
    drop(drained);
    http.await??;
    if left == 0 { Ok(()) } else { Err("the last run was not done in time".into()) }
}

#[derive(Clone)]
struct Replica {
    name: String,
    locks: Locks,
    election: Election,
    table: SqlitePool,
    ending: watch::Receiver<bool>,
}

impl Replica {
    /// Campaigns, does the job while it leads, and campaigns again, until the replica ends.
    async fn job(self) -> distlock::Result<()> {
        let job = async |leading: Leading| match self.lead(&leading).await {
            Ok(()) => Ok(ControlFlow::Break(())),
            Err(error) => {
                eprintln!("the next candidate shall try: {error}");
                Ok(ControlFlow::Continue(()))
            }
        };
        match self.election.keep_running(&self.name, job).await {
            // The replica stood by when it was drained.
            Err(Error::Closed { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Does one run after the other until the replica ends. Dropped if the leadership is lost.
    async fn lead(&self, leading: &Leading) -> Result<(), Failure> {
        let (token, mut ending) = (leading.token(), self.ending.clone());
        println!("leads with token {token}");
        // The token goes into the table before the first read: late writes of an earlier leader are
        // refused.
        let mut written = add(&self.table, token, &self.name, 0).await?;
        let mut run = last(&self.table).await?.map_or(0, |(run, ..)| run);
        let mut schedule = tokio::time::interval(EVERY);
        while written {
            tokio::select! {
                biased;
                // Ends only between two runs.
                _ = ending.wait_for(|ending| *ending) => return Ok(()),
                _ = schedule.tick() => run += 1,
            }
            leading.proclaim(format!("{}, run {run}", self.name)).await?;
            written = add(&self.table, token, &self.name, 1).await?;
            println!("run {run} with token {token}, written: {written}");
        }
        Err("a later leader has written".into())
    }
}

/// Opens the table: the number of runs, the last leader, and its fencing token.
pub(crate) async fn open(file: PathBuf) -> sqlx::Result<SqlitePool> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let table = SqlitePool::connect_with(options.busy_timeout(PATIENCE)).await?;
    let columns = "CREATE TABLE IF NOT EXISTS runs
        (job TEXT PRIMARY KEY, runs BIGINT NOT NULL, leader TEXT NOT NULL, fence BIGINT NOT NULL)";
    sqlx::query(columns).execute(&table).await?;
    Ok(table)
}

/// Adds runs in one statement, unless a later leader wrote before. Returns whether it did.
pub(crate) async fn add(
    table: &SqlitePool,
    token: FencingToken,
    leader: &str,
    runs: i64,
) -> sqlx::Result<bool> {
    let upsert = "INSERT INTO runs (job, runs, leader, fence) VALUES ('report', $1, $2, $3)
        ON CONFLICT (job) DO UPDATE
        SET runs = runs.runs + excluded.runs, leader = excluded.leader, fence = excluded.fence
        WHERE runs.fence <= excluded.fence";
    let upsert = sqlx::query(upsert).bind(runs).bind(leader).bind(token.as_i64());
    Ok(upsert.execute(table).await?.rows_affected() == 1)
}

pub(crate) async fn last(table: &SqlitePool) -> sqlx::Result<Option<(i64, String, i64)>> {
    sqlx::query_as("SELECT runs, leader, fence FROM runs").fetch_optional(table).await
}

type Answer = (StatusCode, String);

fn routes(replica: Replica) -> Router {
    let routes = Router::new().route("/live", get(live)).route("/ready", get(ready));
    routes.route("/leader", get(leader)).route("/table", get(table)).with_state(replica)
}

/// Whether the process is healthy. An outage of the store does not count: a restart would not end
/// it.
async fn live(State(replica): State<Replica>) -> String {
    format!("alive, locks {}", replica.locks.connection())
}

/// Whether the replica should get requests.
async fn ready(State(replica): State<Replica>) -> Answer {
    if *replica.ending.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, "ending".to_owned());
    }
    answer(replica.locks.ping().await, |took| format!("ready, asked for {took:.1?}"))
}

async fn leader(State(replica): State<Replica>) -> Answer {
    answer(replica.election.leader().await, |leader| match leader {
        Some(it) => format!("{}, token {}", String::from_utf8_lossy(&it.value), it.token),
        None => "nobody".to_owned(),
    })
}

async fn table(State(replica): State<Replica>) -> Answer {
    answer(last(&replica.table).await, |last| match last {
        Some((run, leader, token)) => format!("{leader}, run {run}, token {token}"),
        None => "nobody".to_owned(),
    })
}

fn answer<T>(asked: Result<T, impl Into<Failure>>, tell: impl FnOnce(T) -> String) -> Answer {
    match asked {
        Ok(told) => (StatusCode::OK, tell(told)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.into().to_string()),
    }
}
