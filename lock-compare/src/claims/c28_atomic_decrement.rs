//! C28: stock is protected by an atomic compare-and-decrement, not by a lock.

use std::sync::Arc;

use crate::{
    Actor, Claim, Contestant, Failure, Figure, Give, Keys, Outcome, Printed, Side, Stage, Take,
    Topic, keys,
};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let space = keys::of(stage.store, &stage.shared().await?.url()).await?;
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
    let plot = first.0.plot(&title, Topic::Oversell);
    let figures = [&first, &second, &ours].map(|(side, left)| {
        Figure::count(format!("left of one item, {}", side.lock), *left as f64, "items")
    });
    let outcome = Outcome::breaks_if(seen, sentence).figures(figures).plots(plot);
    Ok(outcome.sides([first.0, second.0, ours.0]))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sale {
    /// `GET`, and if something is left, `DECR`.
    ReadThenDecr,
    /// The same, if the client's own calculation still says that it holds the lock.
    CheckedDecr,
    /// One atomic step that decrements unless nothing is left.
    Atomic,
}

/// A gets the lock, sees one item, and stands still until B has the lock and sells it. Then A
/// sells. Also returns the stock in the store: less than 0 is oversold.
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
    let (name, trace, ttl) = (stage.name(what), stage.trace(label), stage.short_ttl());
    let stock = format!("{name}-stock");
    shop.set(&stock, "1").await?;
    let seen = async || -> Result<i64, Failure> {
        Ok(shop.get(&stock).await?.ok_or("there is no stock")?.parse()?)
    };
    let sell = async |seen: i64, holds: bool| -> Result<bool, Failure> {
        Ok(match sale {
            Sale::Atomic => shop.decr(&stock, true).await?.is_some(),
            Sale::CheckedDecr if !holds => false,
            _ => seen > 0 && shop.decr(&stock, false).await?.is_some(),
        })
    };
    let home = Actor::start("A")?;
    let (client, hold, first) = trace.client("A").takes_in(&home, lock, &name, ttl).await?;
    let first_saw = seen().await?;

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let other = lock.client().await?;
    let (next, second) = trace.client("B").takes(&*other, &name, ttl).await?;
    let sold = sell(seen().await?, next.believes()).await?;
    let mut story = vec![format!("A sees {first_saw} item and stands still; B gets the lock")];
    story.push(format!("B sells the item: {sold}"));
    pause.end();
    breakage.healed();
    let holds = first.believes(|| hold.believes());
    let late = sell(first_saw, holds).await?;
    story.push(format!("A comes back, believes that it holds the lock: {holds}, sells: {late}"));
    second.leaves(next).await?;
    // A client with an expired session cannot release any more.
    let _ = home.run(async move { hold.release().await }).await?;
    first.ended("came back late");
    drop(client);
    let left = seen().await?;
    story.push(format!("the store says that {left} are left"));
    let happened = format!("{left} left of one item");
    let side = Side::new(label, lock.nature(), left >= 0, happened).story(story);
    Ok((side.played(trace.history())?, left))
}
