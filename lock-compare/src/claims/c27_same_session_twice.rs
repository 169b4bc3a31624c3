//! C27: the same name twice through one session.

use std::time::Duration;

use distlock::{Locks, Owner};

use crate::{Claim, Failure, Nature, Outcome, Side, Stage, Verdict};
#[cfg(feature = "etcd")]
use crate::{Contestant, Store, go_mutex::GoMutex};

pub(super) const CLAIM: Claim = Claim {
    number: 27,
    title: "Twice through one session",
    claimed: "To lock the same name twice through one session is idempotent and harmless.",
    done: "Two tasks of one client lock the same name; then one of them unlocks, and a stranger \
           asks. On etcd also as etcd's Go client does it, whose key is the name and the lease. In \
           the control distlock plays that part, or its two tasks share an owner on purpose.",
    measured: "Whether both tasks are in, and whether the unlock of one lets a stranger in.",
    threshold: "Holds if both are in and the stranger is not; breaks if all are in; differs if the \
                second task is kept out.",
};

const TTL: Duration = Duration::from_secs(10);
/// A free lock is granted long before this.
#[cfg(feature = "etcd")]
const PATIENCE: Duration = Duration::from_secs(3);

/// The results of the second task and of a stranger.
#[derive(Clone, Copy)]
struct Entered {
    second: bool,
    stranger: bool,
}

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (locks, other) = (stage.connect().await?, stage.connect().await?);
    let plain = distlock(&locks, &other, &stage.name("plain"), None).await?;
    let owner = Owner::new();
    let shared = distlock(&locks, &other, &stage.name("owner"), Some(&owner)).await?;
    locks.close().await?;
    other.close().await?;
    let ours = [
        plain.side("distlock", Nature::Distlock),
        shared.side("distlock, with an owner that both share", Nature::Distlock),
    ];
    #[cfg(feature = "etcd")]
    if stage.store == Store::Etcd {
        let go = etcd_go(stage).await?;
        let side = go.side("the key of etcd's Go client", Nature::Imitation);
        return Ok(stage.pick(go, plain).outcome().side(side).sides(ours));
    }
    Ok(stage.pick(plain, shared).outcome().sides(ours))
}

impl Entered {
    fn happened(self) -> &'static str {
        match (self.second, self.stranger) {
            (false, _) => "the second task is kept out until the first has unlocked",
            (true, false) => "both tasks are in, and the unlock of one lets nobody else in",
            (true, true) => {
                "both tasks are in, and the unlock of one lets a stranger in beside the \
                             other"
            }
        }
    }

    fn side(self, lock: &str, nature: Nature) -> Side {
        Side::new(lock, nature, !(self.second && self.stranger), self.happened())
    }

    fn outcome(self) -> Outcome {
        let verdict = match (self.second, self.stranger) {
            (false, _) => Verdict::Differs,
            (true, false) => Verdict::Holds,
            (true, true) => Verdict::Breaks,
        };
        Outcome::new(verdict, self.happened())
    }
}

async fn distlock(
    locks: &Locks,
    other: &Locks,
    name: &str,
    owner: Option<&Owner>,
) -> Result<Entered, Failure> {
    let lock = locks.lock(name)?.ttl(TTL);
    let lock = match owner {
        Some(owner) => lock.owner(owner),
        None => lock,
    };
    let first = lock.acquire().await?;
    let Some(second) = lock.try_acquire().await? else {
        first.release().await?;
        return Ok(Entered { second: false, stranger: false });
    };
    first.release().await?;
    let stranger = other.lock(name)?.ttl(TTL).try_acquire().await?;
    let entered = Entered { second: true, stranger: stranger.is_some() };
    for guard in [Some(second), stranger].into_iter().flatten() {
        guard.release().await?;
    }
    Ok(entered)
}

#[cfg(feature = "etcd")]
async fn etcd_go(stage: &Stage) -> Result<Entered, Failure> {
    let (lock, name) = (GoMutex::new(stage.shared().await?.url()), stage.name("go"));
    let (client, other) = (lock.client().await?, lock.client().await?);
    let first = client.acquire(&name, TTL, PATIENCE).await?.ok_or("the lock is not free")?;
    let second = client.acquire(&name, TTL, PATIENCE).await?;
    first.release().await?;
    let stranger = other.acquire(&name, TTL, PATIENCE).await?;
    let entered = Entered { second: second.is_some(), stranger: stranger.is_some() };
    client.close().await?;
    other.close().await?;
    Ok(entered)
}
