//! C16: after waiting, a client must look whether its own place is still there.

use async_trait::async_trait;
use lock_history::{Checker, Grade, Rule};

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Nature, Outcome, Side, Stage,
    scenario::{RevokedWaiter, revoked_waiter},
    waiters::InLine,
};

/// C16.
pub(crate) struct OwnPlaceChecked;

const CLAIM: Claim = Claim {
    number: 16,
    title: "A waiter checks its own place",
    claimed: "After waiting, a client must check that its own session and key still exist before it \
              believes that it holds the lock.",
    done: "A holds the lock and B waits; an operator removes B's place; C queues up and A releases. \
           Played with a waiter of distlock, and with one that has the same place and only looks \
           whether the client before it is gone.",
    measured: "Whether B believes that it holds the lock while C holds it.",
    threshold: "Holds if the waiter that looks only before itself believes so, and distlock's does \
                not.",
};

#[async_trait]
impl Experiment for OwnPlaceChecked {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let (first, second) = stage.pick((false, true), (true, false));
        let (first, second) =
            tokio::join!(play(stage, first, "first"), play(stage, second, "second"));
        let ((first, checks), (second, blind)) = (first?, second?);
        let sentence =
            format!("{}: {}; {}: {}", first.lock, first.happened, second.lock, second.happened);
        Ok(Outcome::holds_if(checks == 0 && blind > 0, sentence)
            .sides([first, second])
            .figure(Figure::count("pairs of holders, first waiter", checks as f64, "pairs"))
            .figure(Figure::count("pairs of holders, second waiter", blind as f64, "pairs")))
    }
}

/// How many pairs of holders there were, too.
async fn play(stage: &Stage, is_blind: bool, what: &str) -> Result<(Side, usize), Failure> {
    let (label, nature) = match is_blind {
        true if stage.store.is_embedded() => ("no look at the own place", Nature::Simulation),
        true => ("no look at the own place", Nature::Imitation),
        false => ("distlock", Nature::Distlock),
    };
    let (name, trace, lock) = (stage.name(what), stage.trace(label), stage.distlock().await?);
    let waiter = InLine::of(&lock, stage.connect().await?).await?;
    let waiter = if is_blind { waiter.blind() } else { waiter };
    let (a, c) = (lock.client().await?, lock.client().await?);
    let RevokedWaiter { deluded, mut story, history } =
        revoked_waiter((&*a, &*c), &waiter, &trace, &name).await?;
    let checker = Checker::new().tokens(Grade::None);
    let pairs = checker.check(&history)?.count(Rule::Exclusion);
    let happened = story.pop().unwrap_or_default();
    let side = Side::new(label, nature, !deluded, happened);
    let side = story.into_iter().fold(side, Side::evidence);
    Ok((side.traced(history, &checker)?, pairs))
}
