//! C5: the key and its expiry must be set in one step.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Claim, Contestant, Experiment, Failure, Give, Outcome, Printed, Side, Stage, Store, Take, keys,
    scenario::crash,
};

/// C5.
pub(crate) struct SetAndExpire;

const CLAIM: Claim = Claim {
    number: 5,
    title: "Key and expiry in one step",
    claimed: "Setting the key and its expiry must be one atomic step; SETNX and then EXPIRE deadlocks \
              when the client dies in between.",
    done: "A client is killed after SETNX and before EXPIRE (in a database after the INSERT, in etcd \
           before the key gets its lease), and another one waits for three times the TTL. Beside it \
           one step, and distlock, whose holders are killed as well.",
    measured: "Whether the key that is left has an end, and how long the next client waits.",
    threshold: "Breaks if the key of two steps has no end and the next client waits in vain, and the \
                other two let it in.",
};

const PATIENCE: Duration = Duration::from_secs(30);

#[async_trait]
impl Experiment for SetAndExpire {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        if stage.store == Store::ZooKeeper {
            let why = "a znode is ephemeral or not when it is created; there are no two steps";
            return Ok(Outcome::cannot_be_asked(why));
        }
        let ttl = stage.quick_or_full(Duration::from_secs(1), Duration::from_secs(3));
        let space = keys::of(stage.store, &*stage.shared().await?).await?;
        let printed = |take| Printed::new(space.clone(), take, Give::CompareAndDel);
        let (halfway, one_step) = (printed(Take::NoExpiry), printed(Take::OneStep));
        let distlock = stage.distlock().await?;
        let dying = "SETNX, then EXPIRE; killed in between";
        let (first, label) =
            stage.pick((&halfway, dying.to_owned()), (&one_step, one_step.label()));
        let [name, other, own] = ["two steps", "one step", "distlock"].map(|what| stage.name(what));
        let ((first, got_in), (second, _), (ours, _)) = tokio::try_join!(
            play(stage, first, label, &name, ttl, ttl * 3),
            play(stage, &one_step, one_step.label(), &other, ttl, PATIENCE),
            // Not every store of distlock accepts a TTL of a second.
            play(stage, &distlock, distlock.label(), &own, ttl * 2, PATIENCE),
        )?;
        let left = space.connect().await?.ttl(&name).await?;
        let end = end(left);
        let seen = left == Some(None) && !got_in && second.well && ours.well;
        let sentence = format!("{}: {end}, {}; {}", first.lock, first.happened, ours.summary());
        let first = first.evidence(format!("afterwards {end}"));
        Ok(Outcome::breaks_if(seen, sentence).sides([first, second, ours]))
    }
}

/// Describes the remaining time of the key.
fn end(left: Option<Option<Duration>>) -> String {
    match left {
        None => "there is no key any more".to_owned(),
        Some(None) => "the key has no end".to_owned(),
        Some(Some(left)) => format!("the key ends in {} ms", left.as_millis()),
    }
}

/// Also returns whether the next client got the lock.
async fn play(
    stage: &Stage,
    lock: &dyn Contestant,
    label: String,
    name: &str,
    ttl: Duration,
    limit: Duration,
) -> Result<(Side, bool), Failure> {
    let crash = crash(lock, &stage.trace(&label), name, ttl, limit).await?;
    let happened = crash.words(limit);
    let got_in = crash.granted_after.is_some();
    let side = Side::new(label, lock.nature(), got_in, happened);
    Ok((side.played(crash.history)?, got_in))
}
