//! C4: only the holder can release a lock.

use std::time::Duration;

use async_trait::async_trait;
use distlock::Locks;

use crate::{Claim, Contestant, Failure, Outcome, Side, Stage, endless::Endless};

pub(super) const CLAIM: Claim = Claim {
    number: 4,
    title: "Only the holder releases",
    claimed: "Nobody can release a lock that someone else holds.",
    done: "A holds the lock, B holds nothing and does all that it can to unlock it, C tries to get \
           in. With distlock B tries, waits and gives up, releases a lock of its own and closes its \
           session; with the lock that is unlocked by name B unlocks.",
    measured: "Whether C gets in while A holds the lock.",
    threshold: "Holds if C does not get in with distlock, and does with the unlock by name.",
};

/// A third client is granted at once, or not at all.
const TTL: Duration = Duration::from_secs(8);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (distlock, endless) = (stage.distlock().await?, Endless::on(stage).await?);
    let own = stage.name("own");
    let guest = Guest { locks: stage.connect().await?, own };
    let guarded: (&dyn Contestant, &dyn Stranger) = (&distlock, &guest);
    let by_name: (&dyn Contestant, &dyn Stranger) = (&endless, &endless);
    let (first, second) = stage.pick((guarded, by_name), (by_name, guarded));
    let (first, kept) = play(stage, first, "first").await?;
    let (second, fell) = play(stage, second, "second").await?;
    let sentence = format!("A stranger unlocks. {}", Side::summaries([&first, &second]));
    Ok(Outcome::holds_if(kept && !fell, sentence).sides([first, second]))
}

/// The actions of a client on a lock that it does not hold.
#[async_trait]
trait Stranger: Send + Sync {
    /// Tries all of them. Returns the replies, line by line.
    async fn unlock(&self, name: &str) -> Result<Vec<String>, Failure>;
}

/// A holds the lock, B unlocks it, C tries to enter, A unlocks. Also returns whether the lock was
/// kept.
async fn play(
    stage: &Stage,
    (lock, b): (&dyn Contestant, &dyn Stranger),
    what: &str,
) -> Result<(Side, bool), Failure> {
    let (name, trace) = (stage.name(what), stage.trace(&lock.label()));
    let (first, third) = (lock.client().await?, lock.client().await?);
    let (hold, entry) = trace.client("A").takes(&*first, &name, TTL).await?;
    let told = b.unlock(&name).await?;
    let intruding = trace.client("C").asks(&name);
    let intruder = third.acquire(&name, TTL, Duration::ZERO).await?;
    intruding.tried(intruder.as_deref());
    entry.believes(|| hold.believes());
    let is_kept = intruder.is_none();
    if let Some(intruder) = intruder {
        intruding.leaves(intruder).await?;
    }
    entry.leaves(hold).await?;
    let happened = match is_kept {
        true => "C does not get the lock: A still has it",
        false => "C gets the lock while A holds it",
    };
    let side = lock.side(is_kept, happened).story(told);
    Ok((side.played(trace.history())?, is_kept))
}

/// A client of distlock that holds only a lock of its own.
struct Guest {
    locks: Locks,
    own: String,
}

#[async_trait]
impl Stranger for Guest {
    async fn unlock(&self, name: &str) -> Result<Vec<String>, Failure> {
        let mut told = Vec::new();
        let tried = self.locks.lock(name)?.try_acquire().await?;
        told.push(format!("B tries: {}", if tried.is_some() { "granted" } else { "it is held" }));
        let short = Duration::from_millis(300);
        let waited = self.locks.lock(name)?.wait(short).acquire().await;
        told.push(match waited {
            Ok(_) => "B waits: granted".to_owned(),
            Err(error) => format!("B waits: {error}"),
        });
        self.locks.lock(&self.own)?.acquire().await?.release().await?;
        told.push("B releases a lock of its own".to_owned());
        self.locks.close().await?;
        told.push("B closes its session with all that it has".to_owned());
        told.push("there is no call that unlocks by name; `revoke` is for operators".to_owned());
        Ok(told)
    }
}

#[async_trait]
impl Stranger for Endless {
    async fn unlock(&self, name: &str) -> Result<Vec<String>, Failure> {
        let done = self.keys().await?.del(name, None).await?;
        Ok(vec![format!(
            "B unlocks by name: {}",
            if done { "deleted" } else { "there is nothing" }
        )])
    }
}
