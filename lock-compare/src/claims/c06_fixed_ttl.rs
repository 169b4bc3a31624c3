//! C6: a fixed TTL shorter than the work lets a second holder in; a watchdog fixes it.

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Give, Outcome, Printed, Side, Stage, Take,
    keys::keys,
    scenario::{LongWork, long_work, short_ttl},
};

/// C6.
pub(crate) struct FixedTtl;

const CLAIM: Claim = Claim {
    number: 6,
    title: "A fixed TTL is shorter than the work",
    claimed: "A fixed TTL that is shorter than the work lets a second holder in; a watchdog that \
              renews the lock fixes it.",
    done: "A takes the lock and works for two TTLs, B waits for it meanwhile; played without and \
           with a watchdog, as printed where the store has Redis's commands, and with distlock.",
    measured: "Whether B gets in while A works.",
    threshold: "Breaks if B gets in with each fixed term and with no watchdog.",
};

#[async_trait]
impl Experiment for FixedTtl {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let (fixed, renewed) = locks(stage).await?;
        let (fixed, renewed) = stage.pick((&fixed, &renewed), (&renewed, &fixed));
        let (fixed, renewed) = tokio::join!(all(stage, fixed, "a"), all(stage, renewed, "b"));
        let (fixed, renewed) = (fixed?, renewed?);
        let enters = |played: &&(Side, bool)| played.1;
        let (first, second) =
            (fixed.iter().filter(enters).count(), renewed.iter().filter(enters).count());
        let seen = first == fixed.len() && second == 0;
        let sides: Vec<_> = fixed.into_iter().chain(renewed).map(|(side, _)| side).collect();
        let sentence = Side::summaries(&sides);
        Ok(Outcome::breaks_if(seen, sentence)
            .sides(sides)
            .figure(Figure::time("TTL", short_ttl(stage)))
            .figure(Figure::time("the work", short_ttl(stage) * 2))
            .figure(Figure::count("a second one enters without a watchdog", first as f64, "locks"))
            .figure(Figure::count("a second one enters with a watchdog", second as f64, "locks")))
    }
}

type Locks = Vec<Box<dyn Contestant>>;

/// The locks without a watchdog, and the same locks with one.
async fn locks(stage: &Stage) -> Result<(Locks, Locks), Failure> {
    let distlock = stage.distlock().await?;
    let (mut fixed, mut renewed) = (Locks::new(), Locks::new());
    if let Some(keys) = keys(stage).await? {
        let printed = Printed::new(keys, Take::OneStep, Give::CompareAndDel);
        fixed.push(printed.boxed());
        renewed.push(Box::new(printed.renewed()));
    }
    fixed.push(Box::new(distlock.clone().fixed_term()));
    renewed.push(Box::new(distlock));
    Ok((fixed, renewed))
}

/// Plays it with all locks at once.
async fn all(
    stage: &Stage,
    locks: &[Box<dyn Contestant>],
    what: &str,
) -> Result<Vec<(Side, bool)>, Failure> {
    let each = locks.iter().enumerate().map(|(number, lock)| {
        let name = stage.name(&format!("{what}{number}"));
        async move { play(stage, &**lock, &name).await }
    });
    futures_util::future::try_join_all(each).await
}

/// Also returns whether a second client got the lock.
async fn play(stage: &Stage, lock: &dyn Contestant, name: &str) -> Result<(Side, bool), Failure> {
    let trace = stage.trace(&lock.label());
    let LongWork { second_after, deluded, story, history } =
        long_work(lock, &trace, name, short_ttl(stage)).await?;
    let side = Side::new(lock.label(), lock.nature(), !deluded, story.join(", "));
    let side = side.played(history)?;
    Ok((side, second_after.is_some()))
}
