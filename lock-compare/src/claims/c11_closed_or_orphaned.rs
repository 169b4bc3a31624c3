//! C11: a closed session frees its locks at once, an orphaned one after its TTL.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use uuid::Uuid;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Outcome, Side, Stage,
    scenario::{Ended, Ending, ending},
};

/// C11.
pub(crate) struct ClosedOrOrphaned;

const CLAIM: Claim = Claim {
    number: 11,
    title: "Closed at once, orphaned after the TTL",
    claimed: "A lock lives as long as its holder's session is kept alive: a session that is closed \
              is over at once, an orphaned one after its TTL.",
    done: "A holds the lock and B waits for it; A closes its session without releasing the lock, and \
           in other rounds A's process ends without a word.",
    measured: "How long after the end B gets in: medians of the rounds, and their ratio.",
    threshold: "Holds if B gets in after a crash, and after a close in less than half of that time.",
};

const PATIENCE: Duration = Duration::from_secs(30);
/// The TTL. A busy machine may need more than a second for a close, and must not need half of this.
fn ttl(stage: &Stage) -> Duration {
    stage.quick_or_full(Duration::from_secs(6), Duration::from_secs(9))
}

/// Factor by which a closed session must end sooner.
const SOONER: f64 = 2.0;

#[async_trait]
impl Experiment for ClosedOrOrphaned {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let lock = stage.distlock().await?;
        let first = stage.pick(Ending::Closed, Ending::Killed);
        let (closed, orphaned, others) = tokio::join!(
            rounds(stage, &lock, first),
            rounds(stage, &lock, Ending::Killed),
            others(stage),
        );
        let ((closed, soon), (orphaned, late)) = (closed?, orphaned?);
        let ratio = late.as_secs_f64() / soon.as_secs_f64().max(1e-6);
        let sentence =
            format!("{}; {}: {ratio:.0} times as long", closed.happened, orphaned.happened);
        Ok(Outcome::holds_if(ratio >= SOONER, sentence)
            .sides([closed, orphaned])
            .sides(others?)
            .figure(Figure::time("TTL", ttl(stage)))
            .figure(Figure::time("from the first end to the next grant", soon))
            .figure(Figure::time("from the second end to the next grant", late))
            .figure(Figure::count("ratio of the two", ratio, "x")))
    }
}

/// The articles' own client, where it is imitated.
async fn others(stage: &Stage) -> Result<Vec<Side>, Failure> {
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        let go = crate::concurrency::GoMutex::new(stage.shared().await?.url());
        let (closed, orphaned) = tokio::try_join!(
            rounds(stage, &go, Ending::Closed),
            rounds(stage, &go, Ending::Killed)
        )?;
        return Ok(vec![closed.0, orphaned.0]);
    }
    let _ = stage;
    Ok(Vec::new())
}

/// Plays all rounds at once, each with its own lock. The trace shows the first.
async fn rounds(
    stage: &Stage,
    lock: &dyn Contestant,
    how: Ending,
) -> Result<(Side, Duration), Failure> {
    let rounds = stage.quick_or_full(3, 7);
    let played = try_join_all((0..rounds).map(|_| play(stage, lock, how))).await?;
    let mut times: Vec<_> = played.iter().filter_map(|round| round.freed).collect();
    if times.len() < rounds {
        return Err(format!("after {how:?} the next client waits in vain").into());
    }
    times.sort();
    let median = times[times.len() / 2];
    let what = match how {
        Ending::Closed => "closed",
        Ending::Killed => "crashed",
    };
    let happened = format!("{what}: the next client gets in after {} ms", median.as_millis());
    let shown: Vec<_> = times.iter().map(|time| time.as_millis().to_string()).collect();
    let side = Side::new(format!("{}, {what}", lock.label()), lock.nature(), true, happened)
        .evidence(format!("the rounds, in ms: {}", shown.join(", ")));
    let history = played.into_iter().next().ok_or("no round was played")?.history;
    Ok((side.played(history)?, median))
}

async fn play(stage: &Stage, lock: &dyn Contestant, how: Ending) -> Result<Ended, Failure> {
    let name = stage.name(&Uuid::new_v4().simple().to_string());
    let trace = stage.trace(&format!("{} {how:?}", lock.label()));
    ending(lock, &trace, &name, ttl(stage), how, PATIENCE).await
}
