//! C25: a program releases its locks when it is asked to stop, and relies on expiry when it cannot.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lock_history::History;
use rustix::process::Signal;
use uuid::Uuid;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Nature, Outcome, Side, Stage, Store,
    program::{self, Running},
    scenario::{Ended, Ending, ending, joined, short_ttl},
};

/// C25.
pub(crate) struct ToldToStop;

const CLAIM: Claim = Claim {
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

const PATIENCE: Duration = Duration::from_secs(30);
/// Factor by which SIGTERM must free the lock sooner.
const SOONER: f64 = 2.0;

#[async_trait]
impl Experiment for ToldToStop {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let first = stage.pick(Ending::Closed, Ending::Killed);
        let (told, killed) = tokio::join!(rounds(stage, first), rounds(stage, Ending::Killed));
        let ((told, soon), (killed, late)) = (told?, killed?);
        let ratio = late.as_secs_f64() / soon.as_secs_f64().max(1e-3);
        let sentence = format!("{}; {}: {ratio:.0} times as long", told.happened, killed.happened);
        Ok(Outcome::holds_if(ratio >= SOONER, sentence)
            .sides([told, killed])
            .figure(Figure::time("TTL", short_ttl(stage)))
            .figure(Figure::time("from the first signal to the next grant", soon))
            .figure(Figure::time("from the second signal to the next grant", late))
            .figure(Figure::count("ratio of the two", ratio, "x")))
    }
}

/// Plays all rounds at once, each with its own lock. The trace shows the first.
async fn rounds(stage: &Stage, how: Ending) -> Result<(Side, Duration), Failure> {
    let rounds = stage.quick_or_full(3, 5);
    let program = program::find().filter(|_| stage.store != Store::Memory);
    let played = try_join_all((0..rounds).map(|_| play(stage, program.as_deref(), how))).await?;
    let mut times: Vec<_> = played.iter().map(|round| round.freed).collect();
    times.sort();
    let median = times[times.len() / 2];
    let shown: Vec<_> = times.iter().map(|time| time.as_millis().to_string()).collect();
    let round = played.into_iter().next().ok_or("no round was played")?;
    let what = round.what;
    let happened = format!("{what}: the next client gets in after {} ms", median.as_millis());
    let side = Side::new(round.lock, Nature::Distlock, true, happened)
        .evidence(format!("the rounds, in ms: {}", shown.join(", ")));
    Ok((side.played(round.history)?, median))
}

struct Round {
    lock: &'static str,
    what: &'static str,
    freed: Duration,
    history: History,
}

async fn play(stage: &Stage, program: Option<&Path>, how: Ending) -> Result<Round, Failure> {
    if let Some(program) = program
        && let Some(round) = signalled(stage, program, how).await?
    {
        return Ok(round);
    }
    let (lock, name) = (stage.distlock().await?, unique(stage));
    let trace = stage.trace(&format!("{} {how:?}", lock.label()));
    let Ended { freed, history, .. } =
        ending(&lock, &trace, &name, short_ttl(stage), how, PATIENCE).await?;
    let freed = freed.ok_or("the next client waits in vain")?;
    let what = match how {
        Ending::Closed => "the session is closed",
        Ending::Killed => "the process ends without a word",
    };
    Ok(Round { lock: "distlock, the library", what, freed, history })
}

/// Plays with the real program. `None` if it cannot use the store.
async fn signalled(stage: &Stage, program: &Path, how: Ending) -> Result<Option<Round>, Failure> {
    let (url, name, ttl) = (stage.shared().await?.url(), unique(stage), short_ttl(stage));
    let trace = stage.trace(&format!("distlock run {how:?}"));
    let (operator, client) = (stage.connect().await?, stage.distlock().await?.client().await?);
    let holding = trace.client("distlock run").asks(&name);
    let mut running = Running::start(program, &url, &name, ttl)?;
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
    Ok(Some(Round { lock: "the program distlock run", what, freed, history: trace.history() }))
}

fn unique(stage: &Stage) -> String {
    stage.name(&Uuid::new_v4().simple().to_string())
}
