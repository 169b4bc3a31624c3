//! C32: the prefix is made a directory, so that the queues of `lock1` and `lock10` do not mix.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use distlock::Locks;

use crate::{
    Claim, Contestant, Distlock, Failure, Figure, Granted, Nature, Outcome, Player, Side, Stage,
    Store, Trace,
};

pub(super) const CLAIM: Claim = Claim {
    number: 32,
    title: "lock1 and lock10 do not mix",
    claimed: "The prefix of a queue is made a directory (`name/`): without the separator the queues \
              of `lock1` and `lock10` mix.",
    done: "A holds `lock10` and B asks for `lock1`, then the other way round; played with distlock, \
           and with a lock that takes every entry which starts with its name for its own queue.",
    measured: "How many of the two locks are refused although they are free.",
    threshold: "Holds if distlock refuses none, and the lock without a separator at least one.",
};

const TTL: Duration = Duration::from_secs(8);
/// A free lock is granted long before this. A client in a wrong queue waits this long.
const WAIT: Duration = Duration::from_secs(2);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let distlock: Arc<dyn Contestant> = Arc::new(stage.distlock().await?);
    let mixing = mixing(stage).await?;
    let (first, second) = stage.pick((distlock.clone(), mixing.clone()), (mixing, distlock));
    let (first, second) =
        tokio::join!(play(stage, &*first, "first"), play(stage, &*second, "second"));
    let ((first, none), (second, some)) = (first?, second?);
    let sentence = Side::summaries([&first, &second]);
    Ok(Outcome::holds_if(none == 0 && some > 0, sentence)
        .sides([first, second])
        .figure(Figure::count("free locks refused, first lock", none.into(), "of 2"))
        .figure(Figure::count("free locks refused, second lock", some.into(), "of 2")))
}

/// Also returns the number of free locks that were refused.
async fn play(stage: &Stage, lock: &dyn Contestant, what: &str) -> Result<(Side, u8), Failure> {
    let trace = stage.trace(&lock.label());
    let (mut refused, mut evidence) = (0, Vec::new());
    for (held, wanted) in [("lock10", "lock1"), ("lock1", "lock10")] {
        let folder = stage.name(&format!("{what}-{held}"));
        let is_granted = is_granted_beside(lock, &trace, &folder, held, wanted).await?;
        refused += u8::from(!is_granted);
        let how = if is_granted { "granted" } else { "refused, although it is free" };
        evidence.push(format!("{held} is held; {wanted} is {how}"));
    }
    let happened = format!("{refused} of 2 free locks are refused");
    let side = lock.side(refused == 0, happened).story(evidence);
    Ok((side.played(trace.history())?, refused))
}

/// Whether B gets its lock while A holds the other one.
async fn is_granted_beside(
    lock: &dyn Contestant,
    trace: &Trace,
    folder: &str,
    held: &str,
    wanted: &str,
) -> Result<bool, Failure> {
    let (a, b) = (lock.client().await?, lock.client().await?);
    let [held_name, wanted_name] = [held, wanted].map(|name| format!("{folder}/{name}"));
    let entry = trace.client(format!("A, {held}")).asks(&held_name);
    let hold = a.acquire(&held_name, TTL, WAIT).await?.ok_or("a free lock is refused")?;
    entry.granted(hold.token());
    let asking = trace.client(format!("B, {wanted}")).asks(&wanted_name);
    let got = b.acquire(&wanted_name, TTL, WAIT).await?;
    let is_granted = got.is_some();
    asking.passes(got).await?;
    entry.gives_back(hold).await?;
    Ok(is_granted)
}

/// The lock without a separator.
async fn mixing(stage: &Stage) -> Result<Arc<dyn Contestant>, Failure> {
    let url = stage.shared().await?.url();
    #[cfg(feature = "etcd")]
    if stage.store == Store::Etcd {
        return Ok(Arc::new(crate::go_mutex::GoMutex::new(url).without_separator()));
    }
    Ok(Arc::new(ByPrefix { url, store: stage.store }))
}

/// An imitation on distlock's own queues: every queue with this name as its prefix counts as its
/// own.
#[derive(Clone)]
struct ByPrefix {
    url: String,
    store: Store,
}

#[async_trait]
impl Contestant for ByPrefix {
    fn label(&self) -> String {
        "a queue without the separator".into()
    }

    fn nature(&self) -> Nature {
        if self.store.is_embedded() { Nature::Simulation } else { Nature::Imitation }
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        let lock = Distlock::new(&self.url).client().await?;
        Ok(Arc::new(PrefixClient { lock, locks: distlock::connect(&self.url).await? }))
    }
}

struct PrefixClient {
    lock: Arc<dyn Player>,
    locks: Locks,
}

#[async_trait]
impl Player for PrefixClient {
    async fn acquire(&self, name: &str, ttl: Duration, wait: Duration) -> Granted {
        match self.locks.names(name).await?.is_empty() {
            true => self.lock.acquire(name, ttl, wait).await,
            // Another client stands in a queue that counts as its own.
            false => Ok(None),
        }
    }
}
