//! Two replicas of the service.

use std::{path::Path, time::Duration};

use distlock::{FencingToken, Locks};
use sqlx::{Sqlite, SqlitePool, Transaction};
use tempfile::{TempDir, tempdir};

use crate::{
    examples::{
        Try,
        program::{PATIENCE, Program},
        service,
    },
    support::{Store, connect, eventually},
};

pub const TRIES: &[Try] = &[
    ("one_replica_leads", |store| Box::pin(one_replica_leads(store))),
    ("a_terminated_leader_ends_its_run", |store| Box::pin(a_terminated_leader_ends_its_run(store))),
    ("a_killed_leader_is_followed", |store| Box::pin(a_killed_leader_is_followed(store))),
    ("a_stopped_leader_writes_no_more", |store| Box::pin(a_stopped_leader_writes_no_more(store))),
    ("an_outage_ends_readiness", |store| Box::pin(an_outage_ends_readiness(store))),
];

/// Tests that cannot run on a file. It has no server to stop, and a process stopped within a
/// transaction stops all others.
pub const SERVERS_ONLY: &[&str] = &["a_stopped_leader_writes_no_more", "an_outage_ends_readiness"];

/// A replica that listens.
struct Replica {
    name: &'static str,
    program: Program,
    url: String,
    client: reqwest::Client,
}

impl Replica {
    async fn start(name: &'static str, store: &str, table: &Path) -> Self {
        let program =
            Program::start("service", [store, table.to_str().unwrap(), name, "127.0.0.1:0"]);
        eventually("it listens", async || !program.out().is_empty()).await;
        let listens = program.out()[0].clone();
        let url = listens.strip_prefix("listens on ").expect("its address").to_owned();
        // Each request uses a new connection, like the checks of a load balancer.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).timeout(PATIENCE);
        Self { name, program, url, client: client.build().unwrap() }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer =
            self.client.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    }

    /// The tokens of its leaderships.
    fn led(&self) -> Vec<u64> {
        let token = |line: &String| line.strip_prefix("leads with token ")?.parse().ok();
        self.program.out().iter().filter_map(token).collect()
    }

    /// The runs that it has written, with their tokens.
    fn written(&self) -> Vec<(i64, u64)> {
        let run = |line: &String| {
            let (run, token) = line.strip_prefix("run ")?.split_once(" with token ")?;
            let token = token.strip_suffix(", written: true")?;
            Some((run.parse().unwrap(), token.parse().unwrap()))
        };
        self.program.out().iter().filter_map(run).collect()
    }
}

/// Two replicas, with their shared store and table.
struct Pair {
    store: Store,
    _folder: TempDir,
    table: SqlitePool,
    locks: Locks,
    /// The two replicas, in the order of their leadership.
    leader: Replica,
    other: Replica,
}

impl Pair {
    async fn start(store: &str, ttl: Duration) -> Self {
        let (store, folder) = (Store::open(store).await, tempdir().unwrap());
        let file = folder.path().join("runs.db");
        let table = service::open(file.clone()).await.unwrap();
        // A process stopped during a read then blocks no other process.
        sqlx::query("PRAGMA journal_mode = WAL").execute(&table).await.unwrap();
        let url = format!("{}?ttl={}s", store.url(), ttl.as_secs());
        let locks = connect(&url).await;
        let (a, b) =
            (Replica::start("a", &url, &file).await, Replica::start("b", &url, &file).await);
        eventually("one leads", async || a.led().len() + b.led().len() > 0).await;
        let (leader, other) = if b.led().is_empty() { (a, b) } else { (b, a) };
        let pair = Self { store, _folder: folder, table, locks, leader, other };
        pair.both_take_part().await;
        pair
    }

    async fn both_take_part(&self) {
        let queue = async || {
            let queue = self.locks.inspect("service/job").await.unwrap();
            (queue.len(), queue.iter().filter(|entry| entry.holds).count()) == (2, 1)
        };
        eventually("one leads and one waits", queue).await;
    }

    /// Blocks all other writers to the table. Also returns the number of runs so far.
    async fn block(&self) -> (Transaction<'static, Sqlite>, i64) {
        let mut block = self.table.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let runs = sqlx::query_scalar("SELECT runs FROM runs").fetch_one(&mut *block).await;
        (block, runs.unwrap())
    }

    /// The number of runs, the last leader, and its token.
    async fn last(&self) -> (i64, String, i64) {
        service::last(&self.table).await.unwrap().expect("a leader")
    }

    async fn other_leads(&self) -> u64 {
        eventually("the other replica writes", async || !self.other.written().is_empty()).await;
        let token = self.other.led()[0];
        assert!(token > self.leader.led()[0]);
        let said = format!("{}, run ", self.other.name);
        assert!(self.other.get("/leader").await.1.starts_with(&said));
        token
    }
}

async fn one_replica_leads(store: &str) {
    let pair = Pair::start(store, PATIENCE).await;
    eventually("it works", async || pair.leader.written().len() > 2).await;
    assert_eq!((pair.leader.led().len(), pair.other.led().len()), (1, 0));
    let token = pair.leader.led()[0];
    for replica in [&pair.leader, &pair.other] {
        assert_eq!(replica.get("/live").await, (200, "alive, locks connected".to_owned()));
        let (status, said) = replica.get("/ready").await;
        assert!(status == 200 && said.starts_with("ready"), "{status} {said}");
        for path in ["/leader", "/table"] {
            let (status, said) = replica.get(path).await;
            let leader = said.starts_with(&format!("{}, run ", pair.leader.name));
            assert!(status == 200 && leader && said.ends_with(&format!("token {token}")), "{said}");
        }
    }
    let runs: Vec<_> = pair.leader.written().iter().map(|(run, _)| *run).collect();
    assert_eq!(runs, (1..=runs.len() as i64).collect::<Vec<_>>());
}

/// The TTL is longer than any wait here, so a timely grant comes from the release.
async fn a_terminated_leader_ends_its_run(store: &str) {
    let mut pair = Pair::start(store, PATIENCE * 10).await;
    // While the table is blocked, no run ends.
    let (block, runs) = pair.block().await;
    let begun = format!("{}, run {}, ", pair.leader.name, runs + 1);
    let leader = async || pair.other.get("/leader").await.1.starts_with(&begun);
    eventually("a run has begun", leader).await;

    pair.leader.program.signal("-TERM");
    let ending = (503, "ending".to_owned());
    eventually("it is not ready", async || pair.leader.get("/ready").await == ending).await;
    assert_eq!(pair.leader.get("/live").await.0, 200);
    assert_eq!(pair.other.get("/ready").await.0, 200);
    assert!(pair.leader.program.runs());
    assert!(pair.other.led().is_empty(), "there are two leaders");
    block.rollback().await.unwrap();

    assert!(pair.leader.program.end().await.success());
    assert_eq!(pair.leader.written().last(), Some(&(runs + 1, pair.leader.led()[0])));
    let next = pair.other_leads().await;
    assert_eq!(pair.other.written()[0], (runs + 2, next));
}

async fn a_killed_leader_is_followed(store: &str) {
    let mut pair = Pair::start(store, Duration::from_secs(4)).await;
    eventually("it works", async || !pair.leader.written().is_empty()).await;
    pair.leader.program.signal("-KILL");
    assert!(!pair.leader.program.end().await.success());
    let next = pair.other_leads().await;
    // A write that the killed leader had sent arrives late.
    let late = FencingToken::new(pair.leader.led()[0]);
    assert!(!service::add(&pair.table, late, pair.leader.name, 1000).await.unwrap());
    let (runs, leader, token) = pair.last().await;
    assert!(runs < 1000, "a stale write came through");
    assert_eq!((leader.as_str(), token), (pair.other.name, next as i64));
}

/// The stopped leader's last statement may wait for the table, and arrives late then.
async fn a_stopped_leader_writes_no_more(store: &str) {
    let pair = Pair::start(store, Duration::from_secs(4)).await;
    let (block, runs) = pair.block().await;
    let begun = format!("{}, run {}, ", pair.leader.name, runs + 1);
    let leader = async || pair.other.get("/leader").await.1.starts_with(&begun);
    eventually("a run has begun", leader).await;
    pair.leader.program.signal("-STOP");
    let stopped = async || lock_lab::state_of(pair.leader.program.pid()) == Some('T');
    eventually("it is stopped", stopped).await;
    block.rollback().await.unwrap();
    let next = pair.other_leads().await;
    pair.leader.program.signal("-CONT");

    // The stopped leader campaigns again. Until the other one ends, only the other one writes.
    pair.both_take_part().await;
    let before = pair.other.written().len();
    eventually("the other one goes on", async || pair.other.written().len() > before + 2).await;
    let (block, runs) = pair.block().await;
    // Each leader counts its own runs.
    let all = async || pair.other.written().last() == Some(&(runs, next));
    eventually("the table has the runs of the other one, and no more", all).await;
    let (_, leader, token) = pair.last().await;
    assert_eq!((leader.as_str(), token), (pair.other.name, next as i64));
    block.rollback().await.unwrap();
    pair.other.program.signal("-TERM");
    eventually("it leads again", async || pair.leader.led().len() == 2).await;
    assert!(pair.leader.led()[1] > next);
}

async fn an_outage_ends_readiness(store: &str) {
    let pair = Pair::start(store, PATIENCE * 10).await;
    let Store::Server(server) = &pair.store else { panic!("{store} has no server") };
    assert_eq!(pair.other.get("/ready").await.0, 200);
    server.stop();
    let (status, said) = pair.other.get("/ready").await;
    assert!(status == 503 && said.contains("unavailable"), "{status} {said}");
    assert_eq!(pair.other.get("/live").await.0, 200);
    server.resume();
    eventually("it is ready again", async || pair.other.get("/ready").await.0 == 200).await;
    assert_eq!((pair.leader.led().len(), pair.other.led().len()), (1, 0));
}
