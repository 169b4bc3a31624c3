//! C11: a closed session frees its locks at once, an orphaned one after its TTL.

use std::time::Duration;

use futures_util::future::try_join_all;

use crate::{
    Claim, Contestant, Failure, Outcome, Side, Stage,
    scenario::{Ending, Round, sooner},
};

pub(super) const CLAIM: Claim = Claim {
    number: 11,
    title: "Closed at once, orphaned after the TTL",
    claimed: "A lock lives as long as its holder's session is kept alive: a session that is closed \
              is over at once, an orphaned one after its TTL.",
    done: "A holds the lock and B waits for it; A closes its session without releasing the lock, and \
           in other rounds A's process ends without a word.",
    measured: "How long after the end B gets in: medians of the rounds, and their ratio.",
    threshold: "Holds if B gets in after a crash, and after a close in less than half of that time.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let lock = stage.distlock().await?;
    let first = stage.pick(Ending::Closed, Ending::Killed);
    let (closed, orphaned, others) = tokio::join!(
        rounds(stage, &lock, first),
        rounds(stage, &lock, Ending::Killed),
        others(stage),
    );
    Ok(sooner(stage, closed?, orphaned?).sides(others?))
}

/// The articles' own client, where it is imitated.
async fn others(stage: &Stage) -> Result<Vec<Side>, Failure> {
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        let go = crate::go_mutex::GoMutex::new(stage.shared().await?.url());
        let (closed, orphaned) = tokio::try_join!(
            rounds(stage, &go, Ending::Closed),
            rounds(stage, &go, Ending::Killed)
        )?;
        return Ok(vec![closed.0, orphaned.0]);
    }
    let _ = stage;
    Ok(Vec::new())
}

/// Plays all rounds at once, each with its own lock.
async fn rounds(
    stage: &Stage,
    lock: &dyn Contestant,
    how: Ending,
) -> Result<(Side, Duration), Failure> {
    let rounds = 0..stage.quick_or_full(3, 7);
    let played = rounds.map(|_| Round::play(stage, lock, how));
    Round::median(try_join_all(played).await?)
}
