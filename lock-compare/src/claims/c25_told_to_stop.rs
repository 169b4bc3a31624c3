//! C25: a program releases its locks when it is asked to stop, and relies on expiry when it cannot.

use std::{path::Path, time::Duration};

use futures_util::future::try_join_all;
use rustix::process::Signal;
use uuid::Uuid;

use crate::{
    Claim, Contestant, Failure, Nature, Outcome, Side, Stage, Store, program,
    scenario::{Ending, PATIENCE, Round, joined, sooner},
    terminal::Terminal,
};

pub(super) const CLAIM: Claim = Claim {
    number: 25,
    title: "Told to stop, a program releases",
    claimed: "A program should release its locks when it is told to stop (SIGTERM), and rely on \
              expiry when it cannot (SIGKILL).",
    done: "The program `distlock run` holds the lock and B waits for it; the program gets SIGTERM, \
           and in other rounds SIGKILL. Where there is no program, or the store is in this process, \
           a client of the library closes its session, or ends without a word.",
    measured: "How long after the signal B gets in: medians of the rounds, and their ratio.",
    threshold: "Holds if B gets in after SIGKILL, and after SIGTERM in less than half of that \
                time.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let first = stage.pick(Ending::Closed, Ending::Killed);
    let (told, killed) = tokio::join!(rounds(stage, first), rounds(stage, Ending::Killed));
    Ok(sooner(stage, told?, killed?))
}

/// Plays all rounds at once, each with its own lock.
async fn rounds(stage: &Stage, how: Ending) -> Result<(Side, Duration), Failure> {
    let rounds = 0..stage.quick_or_full(3, 5);
    let program = program::find().filter(|_| stage.store != Store::Memory);
    Round::median(try_join_all(rounds.map(|_| play(stage, program.as_deref(), how))).await?)
}

async fn play(stage: &Stage, program: Option<&Path>, how: Ending) -> Result<Round, Failure> {
    if let Some(program) = program
        && let Some(round) = signalled(stage, program, how).await?
    {
        return Ok(round);
    }
    Round::play(stage, &stage.distlock().await?, how).await
}

/// Plays with the real program. `None` if it cannot use the store.
async fn signalled(stage: &Stage, program: &Path, how: Ending) -> Result<Option<Round>, Failure> {
    let unique = Uuid::new_v4().simple().to_string();
    let (url, name, ttl) = (stage.shared().await?.url(), stage.name(&unique), Round::ttl(stage));
    let trace = stage.trace(&format!("distlock run {how:?}"));
    let (operator, client) = (stage.connect().await?, stage.distlock().await?.client().await?);
    let holding = trace.client("distlock run").asks(&name);
    let mut command = program::on(program, &url);
    let limit = format!("{}ms", ttl.as_millis());
    command.args(["run", &name, "--ttl", &limit, "--", "sleep", "600"]);
    let mut running = Terminal::start(command)?;
    tokio::select! {
        held = joined(&operator, &name, 0) => drop(held?),
        ended = running.ended() => return ended.map(|()| None),
    }
    holding.granted(None);
    let waiting = trace.client("B").asks(&name);
    let next = client.acquire(&name, ttl, PATIENCE);
    let signal = async {
        joined(&operator, &name, 1).await?;
        let breakage = trace.fault("signal", "distlock run");
        holding.ended("it gets a signal");
        let from = trace.now();
        running.signal(match how {
            Ending::Closed => Signal::TERM,
            Ending::Killed => Signal::KILL,
        })?;
        breakage.healed();
        Ok::<_, Failure>(from)
    };
    let (next, from) = tokio::join!(async { next.await.map(|next| (next, trace.now())) }, signal);
    let ((next, at), from) = (next?, from?);
    let next = next.ok_or("the next client waits in vain")?;
    waiting.granted(next.token());
    waiting.gives_back(next).await?;
    running.ended().await?;
    let what = match how {
        Ending::Closed => "SIGTERM",
        Ending::Killed => "SIGKILL",
    };
    let freed = Duration::from_nanos(at.saturating_sub(from));
    let (lock, nature) = ("the program distlock run".to_owned(), Nature::Distlock);
    Ok(Some(Round { lock, nature, what, freed, history: trace.history() }))
}
