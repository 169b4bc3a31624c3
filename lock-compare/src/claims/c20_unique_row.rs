//! C20: a row with a unique key is a mutex that never expires.

use std::time::Duration;

use crate::{
    Claim, Failure, Give, KeySpace, Outcome, Printed, Side, Stage, Store, Take, keys,
    scenario::{PATIENCE, killed},
};

pub(super) const CLAIM: Claim = Claim {
    number: 20,
    title: "A unique row has no end",
    claimed: "A MySQL row with a unique key is a mutex, with the owner checked at release; it has no \
              expiry of its own, so a crashed holder blocks for ever unless an expiry is added.",
    done: "A client inserts the row and is killed, and another one waits for four times the TTL. \
           Beside it a row that says when it ends, and distlock, whose holders are killed as well. A \
           stranger also tries to delete the row with another owner.",
    measured: "Whether the next client gets in, and whether the stranger's release is refused.",
    threshold: "Breaks if the row without an end blocks the next client for four times the TTL, the \
                stranger is refused, and the other two let the next client in.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if !matches!(stage.store, Store::MySql | Store::Postgres | Store::Sqlite) {
        return Ok(Outcome::cannot_be_asked("it is no database with rows"));
    }
    let ttl = stage.quick_or_full(Duration::from_secs(1), Duration::from_secs(3));
    let space = keys::of(stage.store, &stage.shared().await?.url()).await?;
    let printed = |take| Printed::new(space.clone(), take, Give::CompareAndDel);
    let (row, ends) = (printed(Take::NoExpiry), printed(Take::OneStep));
    let (bare, added) = ("unique row without an end", "unique row that says when it ends");
    let distlock = stage.distlock().await?;
    let (first, label) = stage.pick((&row, bare), (&ends, added));
    let ((first, _), (second, _), (ours, _)) = tokio::try_join!(
        killed(stage, first, (label, "row"), ttl, ttl * 4),
        killed(stage, &ends, (added, "ends"), ttl, PATIENCE),
        killed(stage, &distlock, ("distlock", "distlock"), ttl * 2, PATIENCE),
    )?;
    let refused = strangers_release_is_refused(&*space, &stage.name("stranger")).await?;
    let seen = !first.well && second.well && ours.well && refused;
    let sentence = Side::summaries([&first, &second, &ours]);
    let first = first.evidence(format!("a release with another owner is refused: {refused}"));
    Ok(Outcome::breaks_if(seen, sentence).sides([first, second, ours]))
}

/// Returns whether only the owner's release deletes the row.
async fn strangers_release_is_refused(space: &dyn KeySpace, name: &str) -> Result<bool, Failure> {
    let keys = space.connect().await?;
    let taken = keys.set_nx(name, "owner", None).await?;
    let by_stranger = keys.del(name, Some("stranger")).await?;
    let by_owner = keys.del(name, Some("owner")).await?;
    Ok(taken && !by_stranger && by_owner)
}
