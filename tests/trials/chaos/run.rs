//! One run: load and faults, then a quiet time, then the verdict.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use distlock::{Fencing, Locks};
use lock_core::Guarantees;
use lock_history::{Checker, Fault, Grade, Header, History, Recorder, Report};
use tokio::task::{JoinHandle, JoinSet};

use crate::{
    chaos::{
        guest::{self, Guests},
        load::{Client, Time, names, nanos},
        plan::{Step, plan},
        stage::{Failure, Home, Stage},
    },
    support::Random,
};

/// The number of clients of a run, and of each client's tasks.
pub const CLIENTS: usize = 5;
const WORKERS: usize = 10;
/// Number of problems shown.
const SHOWN: usize = 5;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Order {
    pub store: &'static str,
    pub seed: u64,
    pub length: Duration,
    pub ttl: Duration,
}

/// The result of a run.
pub struct Outcome {
    pub history: History,
    pub report: Report,
    /// Problems outside the history: names that cannot be acquired, leftovers.
    pub wrong: Vec<String>,
}

/// Plays a run on a store.
///
/// # Errors
///
/// Problems of the run itself: a server that does not start, a client that cannot connect before
/// the first fault.
pub async fn run(stage: Arc<dyn Stage>, order: &Order) -> Result<Outcome, Failure> {
    let mut run = Run::start(stage, order).await?;
    let outcome = run.outcome(order).await;
    // Runtimes must not end within another runtime.
    tokio::task::spawn_blocking(move || drop(run)).await?;
    outcome
}

struct Run {
    stage: Arc<dyn Stage>,
    guarantees: Guarantees,
    recorder: Recorder,
    time: Time,
    stop: Arc<AtomicBool>,
    clients: Vec<Placed>,
    guests: Option<Arc<Guests>>,
}

/// A client in its home.
struct Placed {
    client: Client,
    workers: Vec<JoinHandle<()>>,
    home: Home,
}

impl Run {
    /// Plays the faults and judges the result.
    async fn outcome(&mut self, order: &Order) -> Result<Outcome, Failure> {
        let mut kinds = self.stage.kinds().to_vec();
        if self.guests.is_some() {
            kinds.extend(guest::KINDS);
        }
        let steps = plan(order.seed, order.length, order.ttl, &kinds);
        let faults = self.play(steps, order.length).await;
        self.stop.store(true, Ordering::Relaxed);
        self.workers_end().await;
        let guests = self.guests_leave().await;
        faults?;
        let guests = guests?;
        // A server that ended by itself is not a fault of a lock. It is reported, and counted as
        // one more kill.
        for ended in self.stage.mend().await? {
            eprintln!("chaos {}: {ended}", order.store);
        }
        let slack = self.guarantees.expiry_slack;
        let limit = order.ttl * 2 + slack + self.stage.recovery();
        let mut wrong = self.clients[0].free(limit).await;
        wrong.extend(self.close().await);
        // While a client connects, it opens a ZooKeeper session with the longest timeout, to learn
        // the server's limits. A fault may swallow the end of that session, which then ends by
        // itself.
        let longest = match order.store.starts_with("zookeeper") {
            true => *self.guarantees.ttl.end(),
            false => order.ttl,
        };
        wrong.extend(self.left_over(longest + slack + Duration::from_secs(3)).await?);
        let mut header = Header::new("chaos", order.seed, order.store);
        header.versions.insert("distlock".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let mut history = self.recorder.take(header);
        history.merge(guests);
        let checker = checker(&self.guarantees, limit).ended_early(self.stage.early());
        let report = checker.check(&history)?;
        Ok(Outcome { history, report, wrong })
    }

    async fn start(stage: Arc<dyn Stage>, order: &Order) -> Result<Self, Failure> {
        let mut connected: Vec<(Home, Locks)> = Vec::new();
        for number in 0..CLIENTS {
            let home = stage.home(number)?;
            let locks = home.spawn(stage.connect(number)).await??;
            connected.push((home, locks));
        }
        let guarantees = connected[0].1.guarantees().clone();
        let names = Arc::new(names(guarantees.kinds));
        let (recorder, time) = (Recorder::default(), Time::start());
        let stop = Arc::new(AtomicBool::new(false));
        let clients = connected.into_iter().enumerate().map(|(number, (home, locks))| {
            let log = Arc::new(recorder.client(format!("c{number}")));
            let (recorder, names, stop) = (recorder.clone(), names.clone(), stop.clone());
            let client =
                Client { locks, log, recorder, time, ttl: order.ttl, names, stop, writes: true };
            Placed::start(home, client, number, order.seed)
        });
        let clients = clients.collect();
        let guests = stage.url().map(|url| Guests::start(order, url, time)).transpose()?;
        let guests = guests.map(Arc::new);
        Ok(Self { stage, guarantees, recorder, time, stop, clients, guests })
    }

    /// Plays all faults, each at its time. Waits until all are healed and the time is over.
    async fn play(&self, steps: Vec<Step>, length: Duration) -> Result<(), Failure> {
        let mut playing = JoinSet::new();
        for step in steps {
            let (stage, recorder, time) = (self.stage.clone(), self.recorder.clone(), self.time);
            let guests = self.guests.clone().filter(|_| guest::KINDS.contains(&step.kind));
            tokio::time::sleep(step.at.saturating_sub(time.since())).await;
            playing.spawn(async move {
                let from = nanos(time.since());
                let played = match guests {
                    Some(guests) => guests.play(&step).await,
                    None => stage.play(&step).await,
                };
                let target = played.map_err(|error| format!("{step}: {error}"))?;
                let until = Some(nanos(time.since()));
                recorder.fault(Fault { fault: step.kind.to_owned(), target, from, until });
                Ok::<_, Failure>(())
            });
        }
        let played = playing.join_all().await.into_iter().collect();
        tokio::time::sleep(length.saturating_sub(self.time.since())).await;
        played
    }

    async fn workers_end(&mut self) {
        for worker in self.clients.iter_mut().flat_map(|placed| placed.workers.drain(..)) {
            worker.await.expect("no worker panics");
        }
    }

    async fn guests_leave(&mut self) -> Result<History, Failure> {
        match self.guests.take().and_then(Arc::into_inner) {
            Some(guests) => guests.leave().await,
            None => Ok(History::new(Header::new("", 0, ""))),
        }
    }

    /// Closes all clients. Returns the problems.
    async fn close(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (number, placed) in self.clients.iter().enumerate() {
            let locks = placed.client.locks.clone();
            let closed = placed.home.spawn(async move { locks.close().await }).await;
            if let Err(error) = closed.expect("closing does not panic") {
                wrong.push(format!("client {number} did not close: {error}"));
            }
        }
        wrong
    }

    /// Waits until nothing is left over. Returns what is still left after the limit.
    async fn left_over(&self, limit: Duration) -> Result<Vec<String>, Failure> {
        let end = self.time.since() + limit;
        loop {
            let left = self.stage.leftovers().await?;
            if left.is_empty() || self.time.since() > end {
                return Ok(left.into_iter().map(|what| format!("left over: {what}")).collect());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Placed {
    fn start(home: Home, client: Client, number: usize, seed: u64) -> Self {
        let mut workers = vec![home.spawn(client.clone().watch_itself())];
        for worker in 0..WORKERS {
            let random = Random::of(seed, &format!("client {number} worker {worker}"));
            workers.push(home.spawn(client.clone().work(random)));
        }
        Self { client, workers, home }
    }

    /// Returns the names that cannot be acquired within the limit.
    async fn free(&self, limit: Duration) -> Vec<String> {
        let client = self.client.clone();
        let acquired = self.home.spawn(async move { client.acquire_all(limit).await });
        acquired.await.expect("no acquire panics")
    }
}

fn checker(guarantees: &Guarantees, gap: Duration) -> Checker {
    let grade = match guarantees.fencing {
        Fencing::Strict(_) => Grade::Strict,
        Fencing::BestEffort(_) => Grade::BestEffort,
        _ => Grade::None,
    };
    Checker::new().tokens(grade).gap(gap)
}

impl Outcome {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.report.is_clean() && self.wrong.is_empty()
    }

    /// The report: the figures, the first problems with the faults of that time, and the place of
    /// the history.
    ///
    /// # Errors
    ///
    /// If the history cannot be written.
    pub fn text(&self) -> Result<String, Failure> {
        let mut text = self.report.summary.to_string();
        for violation in self.report.violations.iter().take(SHOWN) {
            write!(text, "\n{violation}")?;
            let (from, until) = violation.span();
            for fault in self.history.faults_between(from, until) {
                write!(text, "\n    {fault}")?;
            }
        }
        let hidden = self.report.violations.len().saturating_sub(SHOWN);
        write!(text, "\n{} violations, {hidden} of them not shown", self.report.violations.len())?;
        for classed in self.report.classed.iter().take(SHOWN) {
            write!(text, "\n{classed}")?;
        }
        for wrong in self.wrong.iter().take(SHOWN) {
            write!(text, "\n{wrong}")?;
        }
        if !self.is_clean() {
            write!(text, "\nhistory: {}", self.write()?.display())?;
        }
        Ok(text)
    }

    fn write(&self) -> Result<PathBuf, Failure> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../chaos");
        fs::create_dir_all(&folder)?;
        let Header { store, seed, .. } = &self.history.header;
        let path = folder.canonicalize()?.join(format!("{store}-{seed}.jsonl"));
        let lines: Vec<String> = self.history.lines().collect();
        fs::write(&path, lines.join("\n") + "\n")?;
        Ok(path)
    }
}
