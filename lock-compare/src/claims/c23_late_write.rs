//! C23: reading and comparing protects nothing by itself, even under a lock.

use distlock::{FencingToken, Gate};
use lock_history::{Checker, Grade, Rule};

use crate::{
    Actor, Claim, Contestant, Entry, Failure, Figure, Outcome, Side, Stage, Topic, words::times,
};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let gate = || Stock::Gate(Gate::new(0));
    let (bare, checked) = stage.pick((Stock::Unprotected, gate()), (gate(), Stock::Unprotected));
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
    let plot = bare.0.plot(&title, Topic::Oversell);
    let seen = sold == 2 && sold_checked == 1;
    let figures = [&bare, &checked].map(|(side, sold)| {
        Figure::count(format!("sales of one item, {}", side.lock), f64::from(*sold), "")
    });
    let outcome = Outcome::breaks_if(seen, sentence).figures(figures).plots(plot);
    Ok(outcome.sides([bare.0, checked.0]))
}

/// The one item for sale, with or without a check of the buyers.
enum Stock {
    Unprotected,
    /// Refuses a write with a token older than one it has seen.
    Gate(Gate<u32>),
}

impl Stock {
    fn sell(&self, token: u64) -> bool {
        match self {
            Self::Unprotected => true,
            Self::Gate(gate) => gate.enter(FencingToken::new(token), |sold| *sold += 1).is_ok(),
        }
    }
}

/// A sees one item, checks that it holds the lock, and stands still past the TTL. B gets the lock
/// and sells the item. A comes back and makes its planned write. Also returns the number of sales.
async fn play(stage: &Stage, stock: Stock, what: &str) -> Result<(Side, u32), Failure> {
    let label = match &stock {
        Stock::Unprotected => "distlock, and a resource that takes every write",
        Stock::Gate(_) => "distlock, and a gate at the resource",
    };
    let (lock, name, trace) = (stage.distlock().await?, stage.name(what), stage.trace(label));
    let (ttl, home) = (stage.short_ttl(), Actor::start("A")?);
    let (client, hold, first) = trace.client("A").takes_in(&home, &lock, &name, ttl).await?;
    let token = hold.token().unwrap_or_default();
    let sure = first.believes(|| hold.believes());
    let mut story = vec![format!("A sees one item, and its lock is valid: {sure}")];

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let other = lock.client().await?;
    let (next, second) = trace.client("B").takes(&*other, &name, ttl).await?;
    let mut sold = 0;
    let mut sell = |who: &str, token: u64, entry: &Entry| {
        let taken = stock.sell(token);
        sold += u32::from(taken);
        match taken {
            true => entry.wrote(token),
            false => entry.rejected(token),
        }
        let what = if taken { "is taken" } else { "is rejected" };
        story.push(format!("{who} sells the item with token {token}: the write {what}"));
    };
    sell("B", next.token().unwrap_or_default(), &second);
    second.leaves(next).await?;
    pause.end();
    breakage.healed();
    // A continues after its check of the lock.
    let standing = home.run(async {}).await;
    standing?;
    sell("A", token, &first);
    let _ = home.run(async move { hold.release().await }).await?;
    first.ended("wrote late");
    drop(client);
    let (history, checker) = (trace.history(), Checker::new().tokens(Grade::None));
    let stale = checker.check(&history)?.count(Rule::Fence);
    let happened = format!("the only item is sold {}, {stale} of them late", times(sold));
    let side = Side::new(label, lock.nature(), stale == 0, happened).story(story);
    Ok((side.traced(history, &checker)?, sold))
}
