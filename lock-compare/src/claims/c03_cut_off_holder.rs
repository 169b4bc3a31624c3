//! C3: a holder that the network cuts off is treated like a crashed one.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Outcome, Side, Stage,
    endless::Endless,
    isolation::{self, Cuttable},
    scenario::{CutOff, cut_off, short_ttl},
};

/// C3.
pub(crate) struct CutOffHolder;

const CLAIM: Claim = Claim {
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

/// Expiry frees the lock long before this.
const PATIENCE: Duration = Duration::from_secs(30);

#[async_trait]
impl Experiment for CutOffHolder {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let (distlock, endless) = (stage.distlock().await?, Endless::on(stage).await?);
        let ttl = short_ttl(stage);
        let expires: (&dyn Contestant, _, _) =
            (&distlock, isolation::distlock(stage).await?, PATIENCE);
        let stays: (&dyn Contestant, _, _) =
            (&endless, isolation::endless(stage, &endless).await?, ttl * 2);
        let (first, second) = match stage.is_swapped() {
            true => (stays, expires),
            false => (expires, stays),
        };
        let (first, second) =
            tokio::join!(play(stage, first, "first"), play(stage, second, "second"));
        let ((first, freed), (second, stuck)) = (first?, second?);
        let seen = freed.is_some() && first.well && stuck.is_none();
        let sentence = format!("The holder is cut off. {}", Side::summaries([&first, &second]));
        let after = freed.map(|freed| Figure::time("from the cut to the next grant", freed));
        Ok(Outcome::holds_if(seen, sentence)
            .sides([first, second])
            .figure(Figure::time("TTL", ttl))
            .figures(after))
    }
}

async fn play(
    stage: &Stage,
    (lock, (a, cut), patience): (&dyn Contestant, Cuttable, Duration),
    what: &str,
) -> Result<(Side, Option<Duration>), Failure> {
    let (name, trace) = (stage.name(what), stage.trace(&lock.label()));
    let b = lock.client().await?;
    let wish = (name.as_str(), short_ttl(stage));
    let CutOff { freed, deluded, story, history } =
        cut_off((&a, &*cut), &b, &trace, wish, patience).await?;
    let well = freed.is_some() && !deluded;
    let happened = story[1..3].join(", ");
    let side = Side::new(lock.label(), lock.nature(), well, happened).story(story);
    Ok((side.played(history)?, freed))
}
