//! C16: after waiting, a client must check whether its own place still exists.

use futures_util::future::try_join_all;

use crate::{
    Claim, Contestant, Failure, Figure, Nature, Outcome, Side, Stage, scenario::revoked_waiter,
    waiters::InLine,
};

pub(super) const CLAIM: Claim = Claim {
    number: 16,
    title: "A waiter checks its own place",
    claimed: "After waiting, a client must check that its own session and key still exist before it \
              believes that it holds the lock.",
    done: "A holds the lock and B waits; an operator removes B's place; C queues up and A releases. \
           Played with a waiter of distlock, and with one that has the same place and only looks \
           whether the client before it is gone; in some rounds B's place goes as soon as it is \
           there.",
    measured: "Whether B believes that it holds the lock while C holds it.",
    threshold: "Holds if the waiter that looks only before itself believes so, and distlock's does \
                not.",
};

/// Rounds in which the place is lost early.
const EARLY: usize = 5;

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (first, second) = stage.pick((B::Checks, B::Blind), (B::Blind, B::Checks));
    let (first, second, early) =
        tokio::join!(play(stage, first, "first"), play(stage, second, "second"), early(stage),);
    let ((first, checks), (second, blind), (early, at_once)) = (first?, second?, early?);
    let sentence = Side::summaries([&first, &second]);
    Ok(Outcome::holds_if(checks == 0 && blind > 0, sentence)
        .sides([first, second, early])
        .figure(Figure::count("pairs of holders, first waiter", checks as f64, "pairs"))
        .figure(Figure::count("pairs of holders, second waiter", blind as f64, "pairs"))
        .figure(Figure::count("pairs of holders, 5 early losses", at_once as f64, "pairs")))
}

/// The kind of client that plays B.
#[derive(Clone, Copy, Eq, PartialEq)]
enum B {
    Checks,
    Blind,
    /// As `Checks`, but its place is removed as soon as it exists.
    Hurried,
}

/// Not part of the verdict: distlock's behaviour if the place is lost in the first moment of the
/// wait.
async fn early(stage: &Stage) -> Result<(Side, usize), Failure> {
    let names = (0..EARLY).map(|round| format!("early{round}"));
    let played = names.map(|name| async move { play(stage, B::Hurried, &name).await });
    let mut played = try_join_all(played).await?;
    let pairs = played.iter().map(|(_, pairs)| pairs).sum();
    played.sort_by_key(|(_, pairs)| *pairs);
    let (mut side, _) = played.pop().ok_or("no round was played")?;
    side.happened = match pairs {
        0 => format!("in {EARLY} rounds B never believes that it holds the lock"),
        pairs => format!("in {EARLY} rounds there are {pairs} pairs of holders"),
    };
    side.well = pairs == 0;
    Ok((side, pairs))
}

/// Also returns the number of pairs of holders.
async fn play(stage: &Stage, b: B, what: &str) -> Result<(Side, usize), Failure> {
    let (label, nature) = match b {
        B::Blind if stage.store.is_embedded() => ("no look at the own place", Nature::Simulation),
        B::Blind => ("no look at the own place", Nature::Imitation),
        B::Checks => ("distlock", Nature::Distlock),
        B::Hurried => ("distlock, its place is lost in the first moment", Nature::Distlock),
    };
    let (name, trace, lock) = (stage.name(what), stage.trace(label), stage.distlock().await?);
    let waiter = InLine::of(&lock, stage.connect().await?).await?;
    let waiter = match b {
        B::Checks => waiter,
        B::Blind => waiter.blind(),
        B::Hurried => waiter.hurried(),
    };
    let (a, c) = (lock.client().await?, lock.client().await?);
    revoked_waiter((&*a, &*c), (&waiter, label, nature), &trace, &name).await
}
