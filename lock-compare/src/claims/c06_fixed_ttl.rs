//! C6: a fixed TTL shorter than the work lets a second holder in; a watchdog fixes it.

use std::time::Duration;

use lock_history::Loss;

use crate::{
    Claim, Contestant, Failure, Figure, Give, Outcome, Printed, Side, Stage, Take, keys::keys,
};

pub(super) const CLAIM: Claim = Claim {
    number: 6,
    title: "A fixed TTL is shorter than the work",
    claimed: "A fixed TTL that is shorter than the work lets a second holder in; a watchdog that \
              renews the lock fixes it.",
    done: "A takes the lock and works for two TTLs, B waits for it meanwhile; played without and \
           with a watchdog, as printed where the store has Redis's commands, and with distlock.",
    measured: "Whether B gets in while A works.",
    threshold: "Breaks if B gets in with each fixed term and with no watchdog.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
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
        .figure(Figure::time("TTL", stage.short_ttl()))
        .figure(Figure::time("the work", stage.short_ttl() * 2))
        .figure(Figure::count("a second one enters without a watchdog", first as f64, "locks"))
        .figure(Figure::count("a second one enters with a watchdog", second as f64, "locks")))
}

type Locks = Vec<Box<dyn Contestant>>;

/// The locks without a watchdog, and the same locks with one.
async fn locks(stage: &Stage) -> Result<(Locks, Locks), Failure> {
    let distlock = stage.distlock().await?;
    let (mut fixed, mut renewed) = (Locks::new(), Locks::new());
    if let Some(keys) = keys(stage).await? {
        let printed = Printed::new(keys, Take::OneStep, Give::CompareAndDel);
        fixed.push(Box::new(printed.clone()));
        renewed.push(Box::new(printed.renewed()));
    }
    fixed.push(Box::new(distlock.clone().fixed_term()));
    renewed.push(Box::new(distlock));
    Ok((fixed, renewed))
}

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

/// A takes the lock and works for two TTLs. B waits for the same time. Also returns whether B got
/// the lock.
async fn play(stage: &Stage, lock: &dyn Contestant, name: &str) -> Result<(Side, bool), Failure> {
    let (trace, ttl) = (stage.trace(&lock.label()), stage.short_ttl());
    let (first, second) = (lock.client().await?, lock.client().await?);
    let (hold, entry) = trace.client("A").takes(&*first, name, ttl).await?;
    let from = trace.now();
    entry.believes(|| hold.believes());
    let waiting = trace.client("B").asks(name);
    // The work ends with this wait.
    let next = second.acquire(name, ttl, ttl * 2).await?;
    let after = Duration::from_nanos(trace.now() - from);
    match &next {
        Some(next) => waiting.granted(next.token()),
        None => waiting.ended("waited in vain"),
    }
    let believes = entry.believes(|| hold.believes());
    if !believes {
        entry.lost(Loss::Deadline, "its own deadline has passed");
    }
    let (enters, deluded) = (next.is_some(), believes && next.is_some());
    let happened = match (enters, deluded) {
        (false, _) => format!("B does not get in while A works for {} s", (ttl * 2).as_secs()),
        (true, true) => format!(
            "B gets in {} ms after A, who still works, A is told nothing: two clients work at the \
             same time",
            after.as_millis()
        ),
        (true, false) => format!(
            "B gets in {} ms after A, who still works, A is told that its term is over, and can stop",
            after.as_millis()
        ),
    };
    if let Some(next) = &next {
        waiting.believes(|| next.believes());
    }
    let own = hold.release().await?;
    entry.ended(if own { "released" } else { "not its own" });
    if let Some(next) = next {
        waiting.gives_back(next).await?;
    }
    Ok((lock.side(!deluded, happened).played(trace.history())?, enters))
}
