//! C5: the key and its expiry must be set in one step.

use std::time::Duration;

use crate::{
    Claim, Contestant, Failure, Give, Outcome, Printed, Stage, Store, Take, keys,
    scenario::{PATIENCE, killed},
};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if stage.store == Store::ZooKeeper {
        let why = "a znode is ephemeral or not when it is created; there are no two steps";
        return Ok(Outcome::cannot_be_asked(why));
    }
    let ttl = stage.quick_or_full(Duration::from_secs(1), Duration::from_secs(3));
    let space = keys::of(stage.store, &stage.shared().await?.url()).await?;
    let printed = |take| Printed::new(space.clone(), take, Give::CompareAndDel);
    let (halfway, one_step) = (printed(Take::NoExpiry), printed(Take::OneStep));
    let distlock = stage.distlock().await?;
    let usual = one_step.label();
    let dying = "SETNX, then EXPIRE; killed in between";
    let (first, label) = stage.pick((&halfway, dying), (&one_step, &*usual));
    let ((first, got_in), (second, _), (ours, _)) = tokio::try_join!(
        killed(stage, first, (label, "two steps"), ttl, ttl * 3),
        killed(stage, &one_step, (&usual, "one step"), ttl, PATIENCE),
        // Not every store of distlock accepts a TTL of a second.
        killed(stage, &distlock, ("distlock", "distlock"), ttl * 2, PATIENCE),
    )?;
    let left = space.connect().await?.ttl(&stage.name("two steps")).await?;
    let end = end(left);
    let seen = left == Some(None) && got_in.is_none() && second.well && ours.well;
    let sentence = format!("{}: {end}, {}; {}", first.lock, first.happened, ours.summary());
    let first = first.evidence(format!("afterwards {end}"));
    Ok(Outcome::breaks_if(seen, sentence).sides([first, second, ours]))
}

/// Describes the remaining time of the key.
fn end(left: Option<Option<Duration>>) -> String {
    match left {
        None => "there is no key any more".to_owned(),
        Some(None) => "the key has no end".to_owned(),
        Some(Some(left)) => format!("the key ends in {} ms", left.as_millis()),
    }
}
