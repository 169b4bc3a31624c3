//! C44: one article prints a bare `DEL` as the way to unlock.

use crate::{
    Claim, Failure, Figure, Give, Outcome, Printed, Side, Stage, Take, keys::keys,
    scenario::late_holder,
};

pub(super) const CLAIM: Claim = Claim {
    number: 44,
    title: "The listing that ends in DEL",
    claimed: "One article prints SETNX, EXPIRE and DEL as the whole lock: it does the same damage \
              as the bare DEL of C7.",
    done: "The same play as C7 (A stands still past its TTL, B gets the lock, A unlocks, C tries to \
           get in), but with the whole listing as printed; C7 takes SET NX PX. Beside it stands the \
           listing with nothing but its last line changed, so that only the DEL can make the \
           difference.",
    measured: "How often the only item is sold.",
    threshold: "Breaks if it is sold twice with the listing, and once with its last line changed.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let Some(keys) = keys(stage).await? else {
        return Ok(Outcome::cannot_be_asked("it is about a listing of Redis's commands"));
    };
    let printed = |give| Printed::new(keys.clone(), Take::TwoSteps, give);
    let (distlock, listing) = (stage.distlock().await?, printed(Give::BareDel));
    let changed = printed(Give::CompareAndDel);
    let (listing, changed) = stage.pick((&listing, &changed), (&changed, &listing));
    let ((wrong, twice), (right, once), (ours, own)) = tokio::try_join!(
        late_holder(stage, listing, "listing"),
        late_holder(stage, changed, "changed"),
        late_holder(stage, &distlock, "distlock"),
    )?;
    let seen = (twice, once, own) == (2, 1, 1);
    let mut sentence = Side::summaries([&wrong, &right]);
    if seen {
        sentence += "; the damage is that of C7, and the last line alone makes it";
    }
    let sold = [("by the listing", twice), ("last line changed", once)].map(|(by, sold)| {
        Figure::count(format!("the only item is sold, {by}"), sold.into(), "times")
    });
    Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).figures(sold))
}
