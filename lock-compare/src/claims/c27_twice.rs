//! C27: one name, locked twice through one session.

use std::time::Duration;

use async_trait::async_trait;
use distlock::Owner;
use lock_history::{Checker, Grade};

use crate::{Claim, Experiment, Failure, Nature, Outcome, Side, Stage, Store, bare::same_lease};

/// C27.
pub(crate) struct Twice;

const CLAIM: Claim = Claim {
    number: 27,
    title: "Locking twice through one session",
    claimed: "Locking the same name twice through one session is idempotent and harmless, since \
              the key is the prefix and the lease.",
    done: "etcd's own lock service is asked twice for one name with one lease, one caller unlocks, \
           and a third one asks; two tasks of one client of distlock ask for one name. In the \
           control the callers of etcd have a lease each, and the tasks of distlock are one owner.",
    measured: "Who gets in while somebody else holds the lock.",
    threshold: "etcd: breaks if both callers hold and the third gets in after one unlocks. Others: \
                holds if the second task gets in and both keep the lock, else differs.",
};

const TTL: Duration = Duration::from_secs(10);

#[async_trait]
impl Experiment for Twice {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let (shared, ours) = ours(stage).await?;
        if stage.store == Store::Etcd {
            return Ok(services(stage).await?.side(ours));
        }
        let sentence = format!("distlock: {}", ours.happened);
        Ok(Outcome::holds_if(shared, sentence).side(ours))
    }
}

/// What etcd's own service does.
async fn services(stage: &Stage) -> Result<Outcome, Failure> {
    let ground = stage.own().await?;
    let addr = ground.server().ok_or("a private store has a server")?.addr().to_string();
    let one_lease = !stage.is_swapped();
    let twice = same_lease(&addr, &stage.name("twice"), one_lease).await?;
    let (a, b) = twice.keys;
    let both = b.as_ref() == Some(&a);
    let happened = match (both, twice.third_got_in) {
        (true, true) => "both callers hold the lock, and when one unlocks, a third one gets in",
        (true, false) => "both callers hold the lock, and nobody else gets in",
        (false, _) => "the second caller has to wait",
    };
    let lease = if one_lease { "one lease" } else { "a lease each" };
    let label = format!("etcd's own lock service, {lease}");
    let side = Side::new(&label, Nature::Program, !both, happened)
        .evidence(format!("the first caller's key: {a}"))
        .evidence(match b {
            Some(key) => format!("the second caller's key: {key}"),
            None => "the second caller gets no key within 1 s".into(),
        });
    let sentence = format!("{label}: {happened}");
    Ok(Outcome::breaks_if(both && twice.third_got_in, sentence).side(side))
}

/// Two tasks of one client ask for one name: whether both have it, and keep it.
async fn ours(stage: &Stage) -> Result<(bool, Side), Failure> {
    let (locks, name, trace) =
        (stage.connect().await?, stage.name("ours"), stage.trace("distlock"));
    let lock = locks.lock(&name)?.ttl(TTL);
    let lock = stage.pick(lock.clone(), lock.owner(&Owner::new()));
    let (a, b, c) = (trace.client("task A"), trace.client("task B"), trace.client("task C"));
    let entry = a.asks(&name);
    let first = lock.acquire().await?;
    entry.granted(Some(first.token().value()));
    let second = lock.try_acquire().await?;
    let shared = second.is_some();
    if second.is_none() {
        b.asks(&name).ended("the lock is held");
    }
    entry.believes(|| first.is_valid());
    let token = first.token().value();
    if !shared {
        entry.releasing();
    }
    first.release().await?;
    if !shared {
        entry.released();
    }
    // The first guard is released; a stranger asks while the second one, if there is one, holds.
    let intruder = stage.connect().await?.lock(&name)?.ttl(TTL).try_acquire().await?;
    let third_got_in = intruder.is_some();
    if let Some(second) = second {
        entry.believes(|| second.is_valid());
        entry.releasing();
        second.release().await?;
        entry.released();
    }
    if let Some(intruder) = intruder {
        intruder.release().await?;
    } else {
        c.asks(&name).ended("the lock is held");
    }
    let kept = shared && !third_got_in;
    let happened = match (shared, third_got_in) {
        (true, false) => "both tasks of one owner have the lock, and it stays when one leaves",
        (true, true) => "both tasks have the lock, and it is gone when one leaves",
        (false, _) => "the second task of the same client does not get in",
    };
    let side = Side::new("distlock", Nature::Distlock, !shared || kept, happened)
        .evidence(format!("the first guard's token: {token}"))
        .evidence(format!("after its release a stranger gets in: {third_got_in}"));
    let checker = Checker::new().tokens(Grade::None);
    Ok((kept, side.traced(trace.history(), &checker)?))
}
