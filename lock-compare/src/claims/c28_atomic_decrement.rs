//! C28: stock is protected by an atomic compare-and-decrement, not by a lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Give, Keys, Outcome, Printed, Side, Stage,
    Take, Topic, keys,
    scenario::{Sale, expired_sale},
};

/// C28.
pub(crate) struct AtomicDecrement;

const CLAIM: Claim = Claim {
    number: 28,
    title: "Read, then decrement",
    claimed: "Stock is not protected by a lock but by an atomic compare-and-decrement in the store (a \
              Lua script, a conditional UPDATE); reading and then decrementing oversells under any \
              expired lock.",
    done: "A locks with a fixed TTL, reads one item and stands still; B gets the expired lock and \
           sells the item; A comes back and decrements. The stock lies in the store: then with its \
           atomic step (a script, a conditional UPDATE, a transaction that compares, a versioned \
           set), and with distlock whose holder looks at its own deadline first.",
    measured: "What the store says is left of one item.",
    threshold: "Breaks if reading and then decrementing leaves less than 0, and the atomic step does \
                not.",
};

#[async_trait]
impl Experiment for AtomicDecrement {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let space = keys::of(stage.store, &*stage.shared().await?).await?;
        let printed = Printed::new(space.clone(), Take::OneStep, Give::CompareAndDel);
        let distlock = stage.distlock().await?;
        let (first, second) =
            stage.pick((Sale::ReadThenDecr, Sale::Atomic), (Sale::Atomic, Sale::ReadThenDecr));
        let (first, second, ours) = tokio::try_join!(
            play(stage, &printed, space.connect().await?, first, "first"),
            play(stage, &printed, space.connect().await?, second, "second"),
            play(stage, &distlock, space.connect().await?, Sale::CheckedDecr, "distlock"),
        )?;
        let seen = first.1 < 0 && second.1 >= 0;
        let sentence = format!(
            "{}: {} left of one item; {}: {}; {}: {}",
            first.0.lock, first.1, second.0.lock, second.1, ours.0.lock, ours.1
        );
        let title = format!("Overselling on {}", stage.store);
        let plot = first.0.plot(&title, Some(Topic::Oversell));
        let figures = [&first, &second, &ours].map(|(side, left)| {
            Figure::count(format!("left of one item, {}", side.lock), *left as f64, "items")
        });
        let outcome = Outcome::breaks_if(seen, sentence).figures(figures).plots(plot);
        Ok(outcome.sides([first.0, second.0, ours.0]))
    }
}

async fn play(
    stage: &Stage,
    lock: &dyn Contestant,
    shop: Arc<dyn Keys>,
    sale: Sale,
    what: &str,
) -> Result<(Side, i64), Failure> {
    let label = match sale {
        Sale::ReadThenDecr => "read, then decrement, under a fixed TTL",
        Sale::Atomic => "atomic compare-and-decrement",
        Sale::CheckedDecr => "distlock, and a look at its deadline before the decrement",
    };
    let (name, trace) = (stage.name(what), stage.trace(label));
    let ttl = stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(4));
    let sold = expired_sale(lock, shop, sale, &trace, &name, ttl).await?;
    let happened = format!("{} left of one item", sold.left);
    let side = Side::new(label, lock.nature(), sold.left >= 0, happened);
    let side = side.story(sold.story);
    Ok((side.played(sold.history)?, sold.left))
}
