//! C44: one article prints a bare `DEL` as the way to unlock.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Experiment, Failure, Figure, Give, Outcome, Printed, Side, Stage, Take,
    keys::keys,
    scenario::{late_holder, short_ttl},
    words::times,
};

/// C44.
pub(crate) struct PrintedDelete;

const CLAIM: Claim = Claim {
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

#[async_trait]
impl Experiment for PrintedDelete {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let Some(keys) = keys(stage).await? else {
            return Ok(Outcome::cannot_be_asked("it is about a listing of Redis's commands"));
        };
        let printed = |give| Printed::new(keys.clone(), Take::TwoSteps, give);
        let distlock: Arc<dyn Contestant> = Arc::new(stage.distlock().await?);
        let listing: Arc<dyn Contestant> = Arc::new(printed(Give::BareDel));
        let changed: Arc<dyn Contestant> = Arc::new(printed(Give::CompareAndDel));
        let (listing, changed) = stage.pick((listing.clone(), changed.clone()), (changed, listing));
        let (wrong, right, ours) = tokio::join!(
            play(stage, &*listing, "listing"),
            play(stage, &*changed, "changed"),
            play(stage, &*distlock, "distlock"),
        );
        let ((wrong, twice), (right, once), (ours, own)) = (wrong?, right?, ours?);
        let seen = twice == 2 && once == 1 && own == 1;
        let mut sentence = Side::summaries([&wrong, &right]);
        if seen {
            sentence += "; the damage is that of C7, and the last line alone makes it";
        }
        let sold = [("by the listing", twice), ("last line changed", once)].map(|(by, sold)| {
            Figure::count(format!("the only item is sold, {by}"), sold.into(), "times")
        });
        Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).figures(sold))
    }
}

/// Also returns how often the item was sold.
async fn play(stage: &Stage, lock: &dyn Contestant, what: &str) -> Result<(Side, u32), Failure> {
    let (name, trace) = (stage.name(what), stage.trace(&lock.label()));
    let late = late_holder(lock, &trace, &name, short_ttl(stage)).await?;
    let happened = format!("the only item is sold {}", times(late.sold));
    let side = Side::new(lock.label(), lock.nature(), !late.third_got_in, happened);
    let side = side.story(late.story);
    Ok((side.played(late.history)?, late.sold))
}
