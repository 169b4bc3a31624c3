//! C3: a holder that the network cuts off is treated like a crashed one.

use std::time::Duration;

use lock_history::Loss;
use tokio::time::sleep;

use crate::{
    Claim, Contestant, Entry, Failure, Figure, Hold, Outcome, Side, Stage,
    endless::Endless,
    isolation::{self, Cuttable},
    scenario::PATIENCE,
};

pub(super) const CLAIM: Claim = Claim {
    number: 3,
    title: "A cut-off holder is freed",
    claimed: "A holder that the network cuts off from the store is treated like a crashed one: the \
              lock is freed by expiry.",
    done: "A holds the lock and B waits for it, A is cut off from the store; then the cut heals and \
           A unlocks; played with distlock, and with a lock that has no expiry.",
    measured: "How long after the cut B gets in, and whether A still believes then that it holds.",
    threshold: "Holds if B gets in within 30 s by the expiry, when A does not believe any more, and \
                not within two TTLs without one.",
};

/// Time between the holder's checks of its own calculation.
const LOOK: Duration = Duration::from_millis(20);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (distlock, endless) = (stage.distlock().await?, Endless::on(stage).await?);
    let ttl = stage.short_ttl();
    let expires: (&dyn Contestant, _, _) = (&distlock, isolation::distlock(stage).await?, PATIENCE);
    let stays: (&dyn Contestant, _, _) =
        (&endless, isolation::endless(stage, &endless).await?, ttl * 2);
    let (first, second) = if stage.is_swapped() { (stays, expires) } else { (expires, stays) };
    let (first, second) = tokio::join!(play(stage, first, "first"), play(stage, second, "second"));
    let ((first, freed), (second, stuck)) = (first?, second?);
    let seen = freed.is_some() && first.well && stuck.is_none();
    let sentence = format!("The holder is cut off. {}", Side::summaries([&first, &second]));
    let after = freed.map(|freed| Figure::time("from the cut to the next grant", freed));
    Ok(Outcome::holds_if(seen, sentence)
        .sides([first, second])
        .figure(Figure::time("TTL", ttl))
        .figures(after))
}

/// A takes the lock, is cut off, and checks its own calculation. B waits as long as its patience
/// lasts. Then the cut heals, and A unlocks. Also returns the time from the cut to B's grant.
async fn play(
    stage: &Stage,
    (lock, (a, cut), patience): (&dyn Contestant, Cuttable, Duration),
    what: &str,
) -> Result<(Side, Option<Duration>), Failure> {
    let (name, ttl, trace) = (stage.name(what), stage.short_ttl(), stage.trace(&lock.label()));
    let b = lock.client().await?;
    let (hold, entry) = trace.client("A").takes(&*a, &name, ttl).await?;
    entry.believes(|| hold.believes());
    let breakage = trace.fault("cut", "A");
    cut.cut().await?;
    let from = trace.now();
    let waiting = trace.client("B").asks(&name);
    let next = tokio::select! {
        next = b.acquire(&name, ttl, patience) => next?,
        () = watch(&*hold, &entry) => unreachable!("it looks for ever"),
    };
    let freed = next.is_some().then(|| Duration::from_nanos(trace.now().saturating_sub(from)));
    match &next {
        Some(next) => waiting.granted(next.token()),
        None => waiting.ended("waited in vain"),
    }
    let deluded = entry.believes(|| hold.believes()) && next.is_some();
    let said = match freed {
        Some(after) => format!("B gets in {} ms after the cut", after.as_millis()),
        None => format!("B waits in vain for {} s", patience.as_secs_f64()),
    };
    let told = match (deluded, freed) {
        (true, _) => "A still believes that it holds the lock",
        (false, Some(_)) => "A does not believe any more that it holds the lock",
        (false, None) => "A is not disturbed",
    };
    if let Some(next) = &next {
        waiting.believes(|| next.believes());
    }
    cut.heal().await;
    breakage.healed();
    let own = hold.release().await?;
    entry.ended(if own { "released" } else { "not its own" });
    if let Some(next) = next {
        waiting.leaves(next).await?;
    }
    let answer = if own { "accepts" } else { "refuses" };
    let side = lock
        .side(freed.is_some() && !deluded, format!("{said}, {told}"))
        .evidence(cut.what())
        .evidence(said)
        .evidence(told)
        .evidence(format!("the cut heals, A unlocks: the store {answer} it"));
    Ok((side.played(trace.history())?, freed))
}

/// Checks without end. Records the loss when it comes.
async fn watch(hold: &dyn Hold, entry: &Entry) {
    let mut is_lost = false;
    loop {
        if !is_lost && !entry.believes(|| hold.believes()) {
            entry.lost(Loss::Deadline, "its own deadline has passed");
            is_lost = true;
        }
        sleep(LOOK).await;
    }
}
