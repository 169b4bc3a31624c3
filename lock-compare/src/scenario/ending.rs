//! A holder ends without a release while another client waits.

use std::{sync::Arc, time::Duration};

use lock_history::History;
use uuid::Uuid;

use crate::{
    Actor, Contestant, Failure, Figure, Hold, Nature, Outcome, Player, Scribe, Side, Stage, Trace,
};

/// Longest wait for the end of a lock that has one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Factor by which a client that can say so must free its lock sooner.
const SOONER: f64 = 2.0;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// Abruptly, as by SIGKILL.
    Killed,
    /// It only closes its session.
    Closed,
}

struct Ended {
    /// Time from the end to the next client's grant; `None` if it gave up.
    freed: Option<Duration>,
    history: History,
}

/// A holder is killed, and another client waits. The side is well if that client gets in; also
/// returns after what time.
pub(crate) async fn killed(
    stage: &Stage,
    lock: &dyn Contestant,
    (label, what): (&str, &str),
    ttl: Duration,
    patience: Duration,
) -> Result<(Side, Option<Duration>), Failure> {
    let (name, trace) = (stage.name(what), stage.trace(label));
    let Ended { freed, history } =
        ending(lock, &trace, &name, ttl, Ending::Killed, patience).await?;
    let happened = match freed {
        Some(after) => format!("the next client gets in {} ms after it", after.as_millis()),
        None => format!("the next client waits in vain for {} s", patience.as_secs_f64()),
    };
    let side = Side::new(label, lock.nature(), freed.is_some(), happened)
        .evidence(format!("the TTL is {} s", ttl.as_secs_f64()));
    Ok((side.played(history)?, freed))
}

/// One round of a claim that compares both endings.
pub(crate) struct Round {
    pub lock: String,
    pub nature: Nature,
    pub what: &'static str,
    pub freed: Duration,
    pub history: History,
}

impl Round {
    /// The TTL. A busy machine may need more than a second for a close, and must not need half of
    /// this.
    pub(crate) fn ttl(stage: &Stage) -> Duration {
        stage.quick_or_full(Duration::from_secs(6), Duration::from_secs(9))
    }

    /// Plays it with clients in this process.
    pub(crate) async fn play(
        stage: &Stage,
        lock: &dyn Contestant,
        how: Ending,
    ) -> Result<Self, Failure> {
        let (name, ttl) = (stage.name(&Uuid::new_v4().simple().to_string()), Self::ttl(stage));
        let trace = stage.trace(&format!("{} {how:?}", lock.label()));
        let Ended { freed, history } = ending(lock, &trace, &name, ttl, how, PATIENCE).await?;
        let freed = freed.ok_or_else(|| format!("after {how:?} the next client waits in vain"))?;
        let what = match how {
            Ending::Closed => "the session is closed",
            Ending::Killed => "the process ends without a word",
        };
        Ok(Self { lock: lock.label(), nature: lock.nature(), what, freed, history })
    }

    /// Returns the side of some rounds with their median. The trace shows the first.
    pub(crate) fn median(rounds: Vec<Self>) -> Result<(Side, Duration), Failure> {
        let mut times: Vec<_> = rounds.iter().map(|round| round.freed).collect();
        times.sort();
        let shown: Vec<_> = times.iter().map(|time| time.as_millis().to_string()).collect();
        let Self { lock, nature, what, history, .. } =
            rounds.into_iter().next().ok_or("no round was played")?;
        let median = times[times.len() / 2];
        let happened = format!("{what}: the next client gets in after {} ms", median.as_millis());
        let side = Side::new(lock, nature, true, happened)
            .evidence(format!("the rounds, in ms: {}", shown.join(", ")));
        Ok((side.played(history)?, median))
    }
}

/// The verdict on an end that the client announces, and one that it does not.
pub(crate) fn sooner(
    stage: &Stage,
    (first, soon): (Side, Duration),
    (second, late): (Side, Duration),
) -> Outcome {
    // One millisecond is as good as none.
    let ratio = late.as_secs_f64() / soon.as_secs_f64().max(1e-3);
    let sentence = format!("{}; {}: {ratio:.0} times as long", first.happened, second.happened);
    Outcome::holds_if(ratio >= SOONER, sentence)
        .sides([first, second])
        .figure(Figure::time("TTL", Round::ttl(stage)))
        .figure(Figure::time("from the first end to the next grant", soon))
        .figure(Figure::time("from the second end to the next grant", late))
        .figure(Figure::count("ratio of the two", ratio, "x"))
}

/// Plays it. A takes the lock, B waits for it as long as its patience lasts, A ends.
async fn ending(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    how: Ending,
    patience: Duration,
) -> Result<Ended, Failure> {
    let (a, b, home) = (trace.client("A"), trace.client("B"), Actor::start("A")?);
    let second = lock.client().await?;
    let (first, hold, entry) = a.takes_in(&home, lock, name, ttl).await?;
    entry.believes(|| hold.believes());
    let end = async {
        let (fault, why) = match how {
            Ending::Killed => ("kill", "killed"),
            Ending::Closed => ("close", "session closed"),
        };
        let (breakage, from) = (trace.fault(fault, "A"), trace.now());
        end(home, first, hold, how).await?;
        breakage.healed();
        entry.ended(why);
        Ok::<_, Failure>(from)
    };
    let (got, ended) = tokio::join!(wait(&second, &b, trace, name, ttl, patience), end);
    let (got, from) = (got?, ended?);
    let freed = got.map(|at| Duration::from_nanos(at.saturating_sub(from)));
    Ok(Ended { freed, history: trace.history() })
}

async fn end(
    home: Actor,
    client: Arc<dyn Player>,
    hold: Box<dyn Hold>,
    how: Ending,
) -> Result<(), Failure> {
    match how {
        Ending::Killed => home.kill((client, hold)),
        Ending::Closed => {
            home.run(async move {
                let closed = client.close().await;
                drop(hold);
                closed
            })
            .await??
        }
    }
    Ok(())
}

/// B waits, enters perhaps, and leaves. Returns the time of its grant.
async fn wait(
    client: &Arc<dyn Player>,
    b: &Scribe,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    patience: Duration,
) -> Result<Option<u64>, Failure> {
    let entry = b.asks(name);
    let Some(hold) = client.acquire(name, ttl, patience).await? else {
        entry.ended("waited in vain");
        return Ok(None);
    };
    let at = trace.now();
    entry.granted(hold.token());
    entry.leaves(hold).await?;
    Ok(Some(at))
}
