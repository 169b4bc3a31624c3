//! C23: reading and comparing protects nothing by itself, even under a lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::Gate;
use lock_history::{Checker, Grade, Rule};

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Outcome, Side, Stage, Topic,
    scenario::{Stock, late_writer},
    words::times,
};

/// C23.
pub(crate) struct LateWrite;

const CLAIM: Claim = Claim {
    number: 23,
    title: "A stalled holder writes late",
    claimed: "Reading and comparing shared stock is no protection by itself: even under a lock, a \
              stalled holder can write late, so the resource must check.",
    done: "A sees one item, finds its lock valid, and stands still past the TTL; B gets the lock and \
           sells the item; A comes back and sells it. The lock is distlock both times; once the \
           resource takes every write, once it rejects old fencing tokens (distlock::Gate).",
    measured: "How often the only item is sold.",
    threshold: "Breaks if it is sold twice without the gate and once with it.",
};

#[async_trait]
impl Experiment for LateWrite {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let gate = || Stock::Gate(Gate::new(0));
        let (bare, checked) =
            stage.pick((Stock::Unprotected, gate()), (gate(), Stock::Unprotected));
        let (bare, checked) =
            tokio::try_join!(play(stage, bare, "first"), play(stage, checked, "second"))?;
        let (sold, sold_checked) = (bare.1, checked.1);
        let sentence = format!(
            "{}: the only item is sold {}; {}: {}",
            bare.0.lock,
            times(sold),
            checked.0.lock,
            times(sold_checked)
        );
        let title = format!("A late write on {}", stage.store);
        let plot = bare.0.plot(&title, Some(Topic::Oversell));
        let seen = sold == 2 && sold_checked == 1;
        let figures = [&bare, &checked].map(|(side, sold)| {
            Figure::count(format!("sales of one item, {}", side.lock), f64::from(*sold), "")
        });
        let outcome = Outcome::breaks_if(seen, sentence).figures(figures).plots(plot);
        Ok(outcome.sides([bare.0, checked.0]))
    }
}

async fn play(stage: &Stage, stock: Stock, what: &str) -> Result<(Side, u32), Failure> {
    let label = match &stock {
        Stock::Unprotected => "distlock, and a resource that takes every write",
        Stock::Gate(_) => "distlock, and a gate at the resource",
    };
    let (lock, name, trace) = (stage.distlock().await?, stage.name(what), stage.trace(label));
    let ttl = stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(4));
    let late = late_writer(&lock, Arc::new(stock), &trace, &name, ttl).await?;
    let checker = Checker::new().tokens(Grade::None);
    let stale = checker.check(&late.history)?.count(Rule::Fence);
    let happened = format!("the only item is sold {}, {stale} of them late", times(late.sold));
    let side = Side::new(label, lock.nature(), stale == 0, happened).story(late.story);
    Ok((side.traced(late.history, &checker)?, late.sold))
}
