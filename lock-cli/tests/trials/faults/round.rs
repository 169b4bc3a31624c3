//! One fault after the other, each while the next holder waits.

use std::{future::Future, time::Duration};

use rustix::process::{Signal, kill_process};

use super::{holder::Holder, log::Log, record::Record, stage::Stage};

/// Longest wait for a step that needs a TTL of 5 s and the store's own slack.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
enum Fault {
    HolderKilled,
    HolderStopped,
    HolderTerminated,
    SupervisorKilled,
    /// The holder and the store receive nothing from each other.
    CutOff,
    /// The holder sends, but receives nothing.
    HalfCutOff,
    /// The server stands still for longer than a TTL.
    StoreStopped,
    /// The supervisor gets no deadlines and could not act on them, until the loss.
    SupervisorStoppedAndCutOff,
}

const OF_PROCESSES: [Fault; 4] =
    [Fault::HolderKilled, Fault::HolderStopped, Fault::HolderTerminated, Fault::SupervisorKilled];
const OF_NETWORKS: [Fault; 4] =
    [Fault::CutOff, Fault::HalfCutOff, Fault::StoreStopped, Fault::SupervisorStoppedAndCutOff];

pub async fn play(store: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let stage = Stage::start(store).await;
    let mut faults: Vec<_> = OF_PROCESSES.to_vec();
    if stage.server().is_some() {
        faults.extend(OF_NETWORKS);
    }
    let (log, mut record) = (Log::new(folder.path()), Record::new(folder.path()));
    let mut holder = Holder::start(&stage, log.path(), &mut record).await;
    let mut token = 0;
    for number in 0..rounds().unwrap_or(faults.len()) {
        let fault = faults[number % faults.len()];
        record.forget();
        let mut round = Round { fault, token, stage: &stage, log: &log, record: &mut record };
        match round.play(holder).await {
            Ok(next) => (token, holder) = (round.token, next),
            Err(error) => return Err(record.tell(&format!("round {number}, {fault:?}: {error}"))),
        }
    }
    Ok(())
}

/// One fault.
struct Round<'a> {
    fault: Fault,
    /// The holder's token. Before the fault, the newest token of the rounds before.
    token: u64,
    stage: &'a Stage,
    log: &'a Log,
    record: &'a mut Record,
}

impl Round<'_> {
    /// Plays the fault. Returns the next holder.
    async fn play(&mut self, mut holder: Holder) -> Result<Holder, String> {
        let (log, fault) = (self.log, self.fault);
        self.token = working(&mut holder, log, self.token).await?;
        let mut next = self.start().await;
        // Some faults find the next holder in line, others before it gets there.
        tokio::time::sleep(chance(Duration::from_millis(400))).await;
        self.record.event(format!("{fault:?} strikes the holder of token {}", self.token));
        strike(fault, self.stage, &mut holder).await?;
        let mut newer = working(&mut next, log, self.token).await;
        // The silence may end the waiter, too: no reply, or its place is gone. If its place is younger
        // than the holder's lock, it may outlive the silence.
        if let (Fault::StoreStopped, Err(late)) = (fault, &newer) {
            let status = next.process.try_wait().map_err(|error| error.to_string())?;
            let code = status.ok_or_else(|| format!("{late}, and it has not ended"))?.code();
            if ![Some(69), Some(79)].contains(&code) {
                return Err(format!("the next one ended with {code:?}"));
            }
            next = self.start().await;
            newer = working(&mut next, log, self.token).await;
        }
        let newer = newer?;
        self.record.event(format!("token {newer} works"));
        let gone = || log.pids(self.token).iter().all(|pid| lock_lab::is_gone(*pid)).then_some(());
        eventually("nothing of the first is left", gone).await?;
        let code = recover(fault, &mut holder).await?;
        if !expected(fault).contains(&code) {
            return Err(format!("it ended with {code:?}"));
        }
        self.check()?;
        Ok(next)
    }

    async fn start(&mut self) -> Holder {
        self.record.event("another one starts");
        Holder::start(self.stage, self.log.path(), self.record).await
    }

    fn check(&mut self) -> Result<(), String> {
        let Some(overlap) = self.log.overlap() else { return Ok(()) };
        self.record.event_at(overlap.from, "the next one's first line");
        self.record.event_at(overlap.to, format!("the last line of token {}", overlap.token));
        let by = overlap.to.since(overlap.from);
        Err(format!("the {} wrote until {by:?} after the next one's first line", overlap.role))
    }
}

/// Waits until the holder's family works, with a token newer than this one.
async fn working(holder: &mut Holder, log: &Log, token: u64) -> Result<u64, String> {
    let works = eventually("the next one works", || log.family_after(token));
    tokio::select! {
        token = works => token,
        status = holder.process.wait() => Err(format!("the next one ended: {status:?}")),
    }
}

/// The number of faults, if more than one of each kind is wanted.
fn rounds() -> Option<usize> {
    let rounds = std::env::var("DISTLOCK_ROUNDS").ok();
    rounds.map(|rounds| rounds.parse().expect("a number")).or(lock_lab::size(None, Some(200)))
}

async fn strike(fault: Fault, stage: &Stage, holder: &mut Holder) -> Result<(), String> {
    match fault {
        Fault::HolderKilled => holder.signal(Signal::KILL),
        Fault::HolderStopped => {
            holder.signal(Signal::STOP);
            // Stopped while it writes to a file of locks, it would block all other clients for as
            // long.
            while holder.is_writing() {
                holder.signal(Signal::CONT);
                tokio::time::sleep(Duration::from_millis(1)).await;
                holder.signal(Signal::STOP);
            }
        }
        Fault::HolderTerminated => holder.signal(Signal::TERM),
        Fault::SupervisorKilled => kill_process(holder.supervisor(), Signal::KILL).unwrap(),
        Fault::CutOff => holder.network.iter().for_each(lock_lab::Proxy::cut),
        Fault::HalfCutOff => holder.network.iter().for_each(lock_lab::Proxy::half_open),
        Fault::SupervisorStoppedAndCutOff => {
            kill_process(holder.supervisor(), Signal::STOP).unwrap();
            holder.network.iter().for_each(lock_lab::Proxy::cut);
        }
        Fault::StoreStopped => {
            let server = stage.server().expect("a server");
            server.stop();
            // The holder loses the lock by its own clock, and only then may the server go on.
            let ended = within(PATIENCE, holder.process.wait()).await;
            server.resume();
            ended.ok_or("it never ended")?.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Ends the fault and the holder. Returns its exit code.
async fn recover(fault: Fault, holder: &mut Holder) -> Result<Option<i32>, String> {
    if matches!(fault, Fault::HolderStopped) {
        holder.signal(Signal::CONT);
    }
    let ended = within(PATIENCE, holder.process.wait()).await;
    let status = ended.ok_or("it never ended")?;
    Ok(status.map_err(|error| error.to_string())?.code())
}

fn expected(fault: Fault) -> &'static [Option<i32>] {
    match fault {
        // By its signal; the other one has ended the command as well.
        Fault::HolderKilled | Fault::HolderTerminated => &[None],
        Fault::SupervisorKilled => &[Some(71)],
        _ => &[Some(79)],
    }
}

/// Waits for a fact that only the processes show.
async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(PATIENCE, found).await.ok_or_else(|| format!("not after {PATIENCE:?}: {what}"))
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}

/// A random part of a duration.
fn chance(most: Duration) -> Duration {
    most.mul_f64(f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0)
}
