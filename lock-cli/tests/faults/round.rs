//! One fault after the other, each while the next holder waits.

use std::{future::Future, time::Duration};

use rustix::process::{Signal, kill_process};

use crate::{holder::Holder, log::Log, stage::Stage};

/// How long something may take that needs a TTL of 2 s and the store's own slack.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Fault {
    HolderKilled,
    HolderStopped,
    HolderTerminated,
    SupervisorKilled,
    /// The holder hears nothing from the store, and it nothing from the holder.
    CutOff,
    /// It speaks, but does not hear.
    HalfCutOff,
    /// The server stands still for longer than a TTL.
    StoreStopped,
    /// Nobody feeds the supervisor, and it could not act if somebody did, until the loss.
    SupervisorStoppedAndCutOff,
}

const OF_PROCESSES: [Fault; 4] =
    [Fault::HolderKilled, Fault::HolderStopped, Fault::HolderTerminated, Fault::SupervisorKilled];
const OF_NETWORKS: [Fault; 4] =
    [Fault::CutOff, Fault::HalfCutOff, Fault::StoreStopped, Fault::SupervisorStoppedAndCutOff];

pub async fn play(store: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let log = Log::new(folder.path());
    let stage = Stage::start(store, folder.path()).await;
    let mut faults: Vec<_> = OF_PROCESSES.to_vec();
    if stage.server().is_some() {
        faults.extend(OF_NETWORKS);
    }
    let mut holder = Holder::start(&stage, log.path()).await;
    let mut token = 0;
    for round in 0..rounds() {
        let fault = faults[round % faults.len()];
        token = eventually(&format!("round {round}: somebody works"), || log.family_after(token))
            .await?;
        let mut next = Holder::start(&stage, log.path()).await;
        // Some faults find the next one in line, others on its way.
        tokio::time::sleep(chance(Duration::from_millis(400))).await;
        strike(fault, &stage, &mut holder).await.map_err(|error| format!("{fault:?}: {error}"))?;
        if matches!(fault, Fault::StoreStopped) {
            // Whoever waits is told, too.
            let status = within(PATIENCE, next.process.wait()).await.ok_or("it waits on")?;
            let code = status.map_err(|error| error.to_string())?.code();
            if code != Some(69) {
                return Err(format!("{fault:?}: the next one ended with {code:?}"));
            }
            next = Holder::start(&stage, log.path()).await;
        }
        let works = format!("{fault:?}: the next one works");
        eventually(&works, || log.family_after(token)).await?;
        let gone = || log.pids(token).iter().all(|pid| is_gone(*pid)).then_some(());
        eventually(&format!("{fault:?}: nothing of the first is left"), gone).await?;
        let code = recover(fault, &mut holder).await?;
        if !expected(fault).contains(&code) {
            return Err(format!("{fault:?}: it ended with {code:?}"));
        }
        holder = next;
    }
    match log.overlap().as_slice() {
        [] => Ok(()),
        late => Err(format!(
            "{} lines under somebody else's lock: {:?}",
            late.len(),
            &late[..late.len().min(5)]
        )),
    }
}

fn rounds() -> usize {
    std::env::var("DISTLOCK_ROUNDS").map_or(10, |rounds| rounds.parse().expect("a number"))
}

async fn strike(fault: Fault, stage: &Stage, holder: &mut Holder) -> Result<(), String> {
    match fault {
        Fault::HolderKilled => holder.signal(Signal::KILL),
        Fault::HolderStopped => holder.signal(Signal::STOP),
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
            // It is lost by the holder's own clock, and only then may the server go on.
            let ended = within(PATIENCE, holder.process.wait()).await;
            server.resume();
            ended.ok_or("it never ended")?.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Ends the fault and the holder; answers its exit code.
async fn recover(fault: Fault, holder: &mut Holder) -> Result<Option<i32>, String> {
    if matches!(fault, Fault::HolderStopped) {
        holder.signal(Signal::CONT);
    }
    let ended = within(PATIENCE, holder.process.wait()).await;
    let status = ended.ok_or_else(|| format!("{fault:?}: it never ended"))?;
    Ok(status.map_err(|error| error.to_string())?.code())
}

fn expected(fault: Fault) -> &'static [Option<i32>] {
    match fault {
        Fault::HolderKilled => &[None],
        // The command's own end.
        Fault::HolderTerminated => &[Some(143)],
        Fault::SupervisorKilled => &[Some(71)],
        _ => &[Some(79)],
    }
}

fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.contains(") Z "))
        || !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits for something that only the processes show.
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

/// A part of a duration.
fn chance(most: Duration) -> Duration {
    most.mul_f64(f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0)
}
