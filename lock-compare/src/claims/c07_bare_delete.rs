//! C7: a release that is a bare `DEL` lets a late holder delete the next one's lock.

use crate::{
    Claim, Contestant, Failure, Give, Outcome, Printed, Side, Stage, Take, Topic, keys::keys,
    scenario::late_holder,
};

pub(super) const CLAIM: Claim = Claim {
    number: 7,
    title: "A bare DEL unlocks for others",
    claimed: "A release that is a bare DEL lets a late holder delete the next holder's lock, and \
              the stock is sold twice; the value must be unique and compared in a script.",
    done: "A takes the lock and stands still past its TTL, B gets it and sells the only item, A \
           comes back and unlocks, C tries to get in. Played with the bare DEL, with the script, \
           and with distlock.",
    measured: "How often the only item is sold.",
    threshold: "Breaks if it is sold twice with the bare DEL and once with the script.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let Some(keys) = keys(stage).await? else {
        return Ok(Outcome::cannot_be_asked("it is about Redis's commands"));
    };
    let printed = |give| Printed::new(keys.clone(), Take::OneStep, give);
    let (distlock, bare) = (stage.distlock().await?, printed(Give::BareDel));
    let wrong: &dyn Contestant = if stage.is_swapped() { &distlock } else { &bare };
    let (wrong, twice) = late_holder(stage, wrong, "wrong").await?;
    let (right, once) = late_holder(stage, &printed(Give::CompareAndDel), "right").await?;
    let (ours, own) = late_holder(stage, &distlock, "distlock").await?;
    let seen = (twice, once, own) == (2, 1, 1);
    let oversell = wrong.plot(&format!("The oversell case on {}", stage.store), Topic::Oversell);
    let sentence = Side::summaries([&wrong, &ours]);
    Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).plots(oversell))
}
