//! The oversell case: a holder stands still for longer than its TTL, comes back and unlocks.

use std::time::Duration;

use lock_history::Loss;

use crate::{Actor, Contestant, Entry, Failure, Hold, Side, Stage, words::times};

/// Plays it. A takes the lock and stands still past the TTL. B gets the lock and begins to sell the
/// only item. A comes back, has nothing to sell, and unlocks. C tries to enter, and sells the stock
/// that it sees. Each client reads the stock when it enters, and writes it when it leaves. Also
/// returns how often the item was sold.
pub(crate) async fn late_holder(
    stage: &Stage,
    lock: &dyn Contestant,
    what: &str,
) -> Result<(Side, u32), Failure> {
    let (name, ttl, trace) = (&*stage.name(what), stage.short_ttl(), stage.trace(&lock.label()));
    let home = Actor::start("A")?;
    let (_client, hold, entry) = trace.client("A").takes_in(&home, lock, name, ttl).await?;
    entry.believes(|| hold.believes());

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let buyer = lock.client().await?;
    let (second, selling) = trace.client("B").takes(&*buyer, name, ttl * 10).await?;
    pause.end();
    breakage.healed();

    let mut story = vec!["B has the lock; A comes back and unlocks".to_owned()];
    let believed = come_back(&home, hold, &entry).await?;
    story.push(match believed {
        true => "A is told that it has released the lock".to_owned(),
        false => "A is told that the lock is not its own any more".to_owned(),
    });
    let (other, c) = (lock.client().await?, trace.client("C"));
    let intruding = c.asks(name);
    let third = other.acquire(name, ttl * 10, Duration::ZERO).await?;
    let third_got_in = third.is_some();
    intruding.tried(third.as_deref());
    selling.believes(|| second.believes());
    story.push(match third_got_in {
        true => "C gets the lock while B holds it: both see one item and sell it".to_owned(),
        false => "C does not get the lock while B holds it: one item is sold once".to_owned(),
    });
    for (hold, entry) in [(Some(second), selling), (third, intruding)] {
        if let Some(hold) = hold {
            entry.leaves(hold).await?;
        }
    }
    let sold = 1 + u32::from(third_got_in);
    let happened = format!("the only item is sold {}", times(sold));
    let side = lock.side(!third_got_in, happened).story(story);
    Ok((side.played(trace.history())?, sold))
}

/// A checks its own calculation, if it has one, and unlocks.
async fn come_back(home: &Actor, hold: Box<dyn Hold>, entry: &Entry) -> Result<bool, Failure> {
    if !entry.believes(|| hold.believes()) {
        entry.lost(Loss::Deadline, "its own deadline has passed");
    } else {
        entry.releasing();
    }
    let believed = home.run(async move { hold.release().await }).await??;
    entry.ended(if believed { "released" } else { "not its own" });
    Ok(believed)
}
