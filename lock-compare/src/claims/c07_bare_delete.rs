//! C7: a release that is a bare `DEL` lets a late holder delete the next one's lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_history::{Checker, Grade};

use crate::{
    Claim, Contestant, Experiment, Failure, Give, Outcome, Printed, Side, Stage, Take, Topic,
    keys::keys, scenario::late_holder, words::times,
};

/// C7.
pub(crate) struct BareDelete;

const CLAIM: Claim = Claim {
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

#[async_trait]
impl Experiment for BareDelete {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let Some(keys) = keys(stage).await? else {
            return Ok(Outcome::cannot_be_asked("it is about Redis's commands"));
        };
        let printed = |give| Printed::new(keys.clone(), Take::OneStep, give);
        let distlock: Arc<dyn Contestant> = Arc::new(stage.distlock().await?);
        let wrong: Arc<dyn Contestant> = match stage.is_swapped() {
            true => distlock.clone(),
            false => Arc::new(printed(Give::BareDel)),
        };
        let right: Arc<dyn Contestant> = Arc::new(printed(Give::CompareAndDel));
        let (wrong, twice) = play(stage, &*wrong, "wrong").await?;
        let (right, script_fails) = play(stage, &*right, "right").await?;
        let (ours, distlock_fails) = play(stage, &*distlock, "distlock").await?;
        let seen = twice && !script_fails && !distlock_fails;
        let title = format!("The oversell case on {}", stage.store);
        let oversell = wrong.plot(&title, Some(Topic::Oversell));
        let sentence = Side::summaries([&wrong, &ours]);
        Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).plots(oversell))
    }
}

/// Also returns whether the item was oversold.
async fn play(stage: &Stage, lock: &dyn Contestant, what: &str) -> Result<(Side, bool), Failure> {
    let (name, trace) = (stage.name(what), stage.trace(&lock.label()));
    let ttl = stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(4));
    let late = late_holder(lock, &trace, &name, ttl).await?;
    let happened = format!("the only item is sold {}", times(late.sold));
    let side = Side::new(lock.label(), lock.nature(), !late.third_got_in, happened);
    let side = side.story(late.story);
    let checker = Checker::new().tokens(Grade::None);
    Ok((side.traced(late.history, &checker)?, late.third_got_in))
}
