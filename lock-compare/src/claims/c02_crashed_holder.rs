//! C2: a holder that crashes is freed by expiry, and the next waiter gets in.

use std::time::Duration;

use crate::{
    Claim, Contestant, Failure, Figure, Outcome, Side, Stage,
    endless::Endless,
    scenario::{PATIENCE, killed},
};

pub(super) const CLAIM: Claim = Claim {
    number: 2,
    title: "A crashed holder is freed",
    claimed: "A holder that crashes without releasing is freed by the end of its TTL, its lease or \
              its session; the next waiter then gets in.",
    done: "A holds the lock and B waits for it, A's process ends without a word; played with \
           distlock, and with a lock that has no expiry.",
    measured: "How long after the crash B gets in.",
    threshold: "Holds if B gets in within 30 s by the expiry, and not within two TTLs without one.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (distlock, endless) = (stage.distlock().await?, Endless::on(stage).await?);
    let ttl = stage.short_ttl();
    let expires: (&dyn Contestant, _) = (&distlock, PATIENCE);
    let stays: (&dyn Contestant, _) = (&endless, ttl * 2);
    let (first, second) = stage.pick((expires, stays), (stays, expires));
    let (by_expiry, without) =
        tokio::join!(play(stage, first, "first"), play(stage, second, "second"));
    let ((first, freed), (second, stuck)) = (by_expiry?, without?);
    let seen = freed.is_some() && stuck.is_none();
    let sentence = format!("The holder is killed. {}", Side::summaries([&first, &second]));
    let after = freed.map(|freed| Figure::time("from the crash to the next grant", freed));
    Ok(Outcome::holds_if(seen, sentence)
        .sides([first, second])
        .figure(Figure::time("TTL", ttl))
        .figures(after))
}

async fn play(
    stage: &Stage,
    (lock, patience): (&dyn Contestant, Duration),
    what: &str,
) -> Result<(Side, Option<Duration>), Failure> {
    killed(stage, lock, (&lock.label(), what), stage.short_ttl(), patience).await
}
