//! The effects on the others when a holder is killed, stopped or cut off.

use std::{
    pin::Pin,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use distlock::{Error, FencingToken, Gate, LockGuard, Locks};
use lock_core::Clock;
use lock_lab::Proxy;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    faults::child::{NAME, STOPS, TTL, URL, boot_nanos, signal},
    support::{Store, beat::Beat, connect, eventually, start},
};

/// Longest wait for the next holder.
const PATIENCE: Duration = Duration::from_secs(60);

type Played = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// A fault that a test plays on the store with this name.
pub type Fault = fn(&'static str) -> Played;

pub const FAULTS: [(&str, Fault); 4] = [
    ("killed", |store| Box::pin(killed(store))),
    ("stopped", |store| Box::pin(stopped(store))),
    ("cut_off", |store| Box::pin(cut_off(store))),
    ("terminated", |store| Box::pin(terminated(store))),
];

/// A process that holds the lock.
struct Holder {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    token: FencingToken,
}

impl Holder {
    async fn start(url: &str) -> Self {
        Self::spawn(Self::command(url)).await
    }

    /// Starts a holder that does no more work, because it has stopped itself.
    async fn start_stopped(url: &str) -> Self {
        let mut command = Self::command(url);
        command.env(STOPS, "1");
        let holder = Self::spawn(command).await;
        eventually("the holder stops", || async { lock_lab::state_of(holder.pid()) == Some('T') })
            .await;
        holder
    }

    fn command(url: &str) -> Command {
        let this = std::env::current_exe().expect("this program");
        let mut command = Command::new(this);
        command.env(URL, url).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a holder");
        let mut out = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = out.next_line().await {
                sink.lock().unwrap().push(line);
            }
        });
        let mut holder = Self { child, lines, token: FencingToken::new(0) };
        eventually("the holder works", || async { holder.line("work").is_some() }).await;
        let held = holder.line("held").expect("it says so first");
        holder.token = FencingToken::new(held["held ".len()..].parse().expect("a token"));
        holder
    }

    /// The last line that starts with this word.
    fn line(&self, word: &str) -> Option<String> {
        self.lines.lock().unwrap().iter().rfind(|line| line.starts_with(word)).cloned()
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("the holder runs")
    }

    fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }
}

/// Time within which the next waiter must have the lock, if this process does not stand still.
fn limit(locks: &Locks) -> Duration {
    TTL + locks.guarantees().expiry_slack + Duration::from_secs(1)
}

async fn next(locks: &Locks) -> Result<LockGuard, String> {
    let lock = locks.lock(NAME).unwrap().ttl(TTL).wait(PATIENCE);
    let (limit, beat, start) = (limit(locks), Beat::start(), Clock::Boot.now());
    loop {
        let granted = lock.acquire().await;
        let (took, late) = (Clock::Boot.now().since(start), beat.late());
        match granted {
            Ok(guard) if took < limit + late * 2 => return Ok(guard),
            // This process has stood still for longer than its place lasts.
            Err(Error::PlaceLost { .. }) if late > TTL / 2 => {}
            Ok(_) => return Err(format!("no lock {limit:?} after the holder was gone: {took:?}")),
            Err(error) => return Err(format!("no lock after the holder was gone: {error}")),
        }
    }
}

async fn killed(store: &str) -> Result<(), String> {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let holder = Holder::start(&server.url()).await;
    holder.signal("-KILL");
    let guard = next(&locks).await?;
    assert!(guard.token() > holder.token);
    Ok(())
}

/// The holder stands still until another client has the lock. Then the first thing it finds is its
/// invalid lock. Its work is not polled again, and its late write is rejected.
async fn stopped(store: &str) -> Result<(), String> {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let holder = Holder::start_stopped(&server.url()).await;
    let resource = Gate::new("nobody");
    let guard = next(&locks).await?;
    resource
        .enter(guard.token(), |writer| *writer = "the next holder")
        .map_err(|e| e.to_string())?;
    let said = holder.lines.lock().unwrap().len();
    holder.signal("-CONT");
    eventually("the holder's late write", || async { holder.line("write").is_some() }).await;
    let lines = holder.lines.lock().unwrap()[said..].to_vec();
    if !lines[0].starts_with("end false true") {
        return Err(format!("the first thing after the pause: {lines:?}"));
    }
    let late = resource.enter(holder.token, |writer| *writer = "the paused holder");
    late.expect_err("a write with the paused holder's token");
    assert_eq!(resource.into_inner(), "the next holder");
    Ok(())
}

/// The holder is asked to end: it gives the lock back, and the waiter does not wait for its TTL.
async fn terminated(store: &str) -> Result<(), String> {
    let server = Store::open(store).await;
    let locks = connect(&server.url()).await;
    let mut holder = Holder::start(&server.url()).await;
    let busy = locks.lock(NAME).unwrap().try_acquire().await.map_err(|error| error.to_string())?;
    assert!(busy.is_none(), "the holder's lock was free");
    holder.signal("-TERM");
    let closed = || async { holder.line("closed").is_some() };
    eventually("it has closed its connection", closed).await;
    let next = locks.lock(NAME).unwrap().try_acquire().await.map_err(|error| error.to_string())?;
    assert!(next.is_some(), "the lock is not free after its holder has closed");
    let status = holder.child.wait().await.map_err(|error| error.to_string())?;
    assert!(status.success(), "it ended with {status}");
    Ok(())
}

/// The holder keeps running, but no message arrives. It learns of the loss before the next grant.
async fn cut_off(store: &str) -> Result<(), String> {
    let server = start(store).await;
    let proxy = Proxy::start(server.addr()).await.map_err(|error| error.to_string())?;
    let locks = connect(&server.url()).await;
    let holder = Holder::start(&server.url_via(&proxy)).await;
    proxy.cut();
    let guard = next(&locks).await?;
    let granted = boot_nanos();
    eventually("the holder's last words", || async { holder.line("at").is_some() }).await;
    let told = holder.line("at").and_then(|at| at["at ".len()..].parse::<u128>().ok());
    if told.is_none_or(|told| told > granted) {
        return Err(format!("told at {told:?}, the next holder was granted at {granted}"));
    }
    let end = holder.line("end").unwrap_or_default();
    if !end.starts_with("end false true") {
        return Err(format!("the holder ended with {end:?}"));
    }
    if holder.line("work false").is_some() {
        return Err("its work was polled without a valid lock".to_owned());
    }
    drop(guard);
    Ok(())
}
