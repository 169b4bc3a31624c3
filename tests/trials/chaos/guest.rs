//! Clients in their own processes, to be killed and stopped.

use std::{
    env,
    io::Write as _,
    process::{ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_history::{Event, Header, History, Recorder, What};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    sync::Mutex,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    chaos::{
        load::{Client, Time, names},
        plan::Step,
        run::Order,
        stage::Failure,
    },
    support::Random,
};

/// Variable that makes this program a guest. It contains the guest's name, its seed, the TTL in ms,
/// the run's start and the URL.
const VISIT: &str = "DISTLOCK_CHAOS_GUEST";
/// The faults of guests.
pub const KINDS: [&str; 2] = ["kill_guest", "stop_guest"];
const GUESTS: usize = 2;
const WORKERS: usize = 4;
/// Time between two hand-overs of a guest's events, and longest time for its end.
const PAUSE: Duration = Duration::from_millis(30);
const LEAVES: Duration = Duration::from_secs(60);

/// Runs as a guest if the environment variable is set.
pub fn visit() -> Option<ExitCode> {
    let order = env::var(VISIT).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(stay(&order)).expect("the order is readable");
    Some(ExitCode::SUCCESS)
}

async fn stay(order: &str) -> Result<(), Failure> {
    let [name, seed, ttl, origin, url] = order.splitn(5, ' ').collect::<Vec<_>>()[..] else {
        return Err(order.into());
    };
    let (seed, ttl): (u64, _) = (seed.parse()?, Duration::from_millis(ttl.parse()?));
    let time = Time::of_origin(origin.parse()?);
    let (recorder, stop) = (Recorder::default(), Arc::new(AtomicBool::new(false)));
    tokio::spawn(told_to_leave(stop.clone()));
    let locks = loop {
        match distlock::connect(url).await {
            Ok(locks) => break locks,
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
            Err(_) => sleep(PAUSE).await,
        }
    };
    let names = Arc::new(names(locks.guarantees().kinds));
    let log = Arc::new(recorder.client(name));
    let recorder_of_client = recorder.clone();
    let client = Client {
        locks: locks.clone(),
        log,
        recorder: recorder_of_client,
        time,
        ttl,
        names,
        stop: stop.clone(),
        // The resource is in another process.
        writes: false,
    };
    let mut tasks = vec![tokio::spawn(client.clone().watch_itself())];
    for worker in 0..WORKERS {
        let random = Random::of(seed, &format!("{name} worker {worker}"));
        tasks.push(tokio::spawn(client.clone().work(random)));
    }
    while !tasks.iter().all(JoinHandle::is_finished) {
        hand_over(&recorder)?;
        sleep(PAUSE).await;
    }
    for task in tasks {
        task.await?;
    }
    // A store that cannot be reached keeps the locks for a TTL.
    let _ = locks.close().await;
    hand_over(&recorder)
}

async fn told_to_leave(stop: Arc<AtomicBool>) {
    // The host closes stdin, or ends and so closes it.
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    stop.store(true, Ordering::Relaxed);
}

fn hand_over(recorder: &Recorder) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in recorder.take(header()).lines().skip(1) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn header() -> Header {
    Header::new("guest", 0, "")
}

/// The guests of a run.
pub struct Guests {
    order: Order,
    url: String,
    time: Time,
    guests: Vec<Mutex<Guest>>,
    /// The events of the guests that have left.
    taken: std::sync::Mutex<History>,
}

struct Guest {
    child: Child,
    /// The complete lines that it has written, available after its end.
    lines: JoinHandle<Vec<String>>,
    visits: usize,
}

impl Guests {
    pub fn start(order: &Order, url: String, time: Time) -> Result<Self, Failure> {
        let guests = (0..GUESTS).map(|number| Guest::start(order, &url, time, number, 0));
        let guests = guests.map(|guest| Ok(Mutex::new(guest?))).collect::<Result<_, Failure>>()?;
        let taken = std::sync::Mutex::new(History::new(header()));
        Ok(Self { order: order.clone(), url, time, guests, taken })
    }

    /// Kills or stops a guest. A killed guest starts again.
    pub async fn play(&self, step: &Step) -> Result<String, Failure> {
        let number = step.client % GUESTS;
        let mut guest = self.guests[number].lock().await;
        let name = format!("g{number}.{}", guest.visits);
        match step.kind {
            "kill_guest" => {
                guest.child.kill().await?;
                let killed = self.time.now();
                sleep(step.lasts).await;
                let visits = guest.visits + 1;
                let next = Guest::start(&self.order, &self.url, self.time, number, visits)?;
                let ended = std::mem::replace(&mut *guest, next);
                self.take(ended.lines.await?, killed)?;
            }
            _ => {
                let pid = guest.child.id().ok_or("a guest has ended")?;
                signal(pid, "-STOP").await?;
                sleep(step.lasts).await;
                signal(pid, "-CONT").await?;
            }
        }
        Ok(name)
    }

    /// Asks all guests to leave, and returns their events.
    pub async fn leave(self) -> Result<History, Failure> {
        for guest in &self.guests {
            let mut guest = guest.lock().await;
            drop(guest.child.stdin.take());
            let status = timeout(LEAVES, guest.child.wait()).await??;
            if !status.success() {
                return Err(format!("a guest ended with {status}").into());
            }
            let lines = std::mem::replace(&mut guest.lines, tokio::spawn(async { Vec::new() }));
            self.take(lines.await?, self.time.now())?;
        }
        Ok(self.taken.into_inner()?)
    }

    /// Records a guest's events, and that its other attempts ended with its process.
    fn take(&self, lines: Vec<String>, ended: u64) -> Result<(), Failure> {
        let empty = History::new(header());
        let mut history = History::from_lines(empty.lines().chain(lines))?;
        for attempt in history.attempts()?.into_iter().filter(|attempt| attempt.over().is_none()) {
            let (client, number) = (attempt.client, attempt.number);
            let what = What::Ended { why: "its process ended".into() };
            history.events.push(Event { at: ended, client, attempt: number, what });
        }
        self.taken.lock().unwrap().merge(history);
        Ok(())
    }
}

impl Guest {
    fn start(
        order: &Order,
        url: &str,
        time: Time,
        number: usize,
        visits: usize,
    ) -> Result<Self, Failure> {
        let (seed, ttl, origin) = (order.seed, order.ttl.as_millis(), time.origin());
        let visit = format!("g{number}.{visits} {seed} {ttl} {origin} {url}");
        let mut command = Command::new(env::current_exe()?);
        command.env(VISIT, visit).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let mut out = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let lines = tokio::spawn(async move {
            let (mut lines, mut line) = (Vec::new(), String::new());
            while out.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                // A kill may cut the last line.
                if line.ends_with('\n') {
                    lines.push(std::mem::take(&mut line));
                }
            }
            lines
        });
        Ok(Self { child, lines, visits })
    }
}

async fn signal(pid: u32, signal: &str) -> Result<(), Failure> {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().await?;
    status.success().then_some(()).ok_or_else(|| format!("kill {signal}: {status}").into())
}
