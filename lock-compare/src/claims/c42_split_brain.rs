//! C42: an old leader on the minority side grants nothing.

use std::{sync::Arc, time::Duration};

use distlock::LockGuard;
use lock_history::{Checker, Grade, Loss};
use lock_lab::{Network, RedisSentinels};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::{
    Breakage, Claim, Contestant, Distlock, Entry, Failure, Give, Nature, Outcome, Player, Plot,
    Printed, Scribe, Side, Stage, Store, Take, Topic, Trace,
    cluster::{OnSide, Probe, Service},
    keys::keys_at,
};

pub(super) const CLAIM: Claim = Claim {
    number: 42,
    title: "No split brain",
    claimed: "There is no split brain: an old leader on the minority side must resign, grants \
              nothing, and still answers serializable reads, which may be stale.",
    done: "The leader of three nodes is cut off from the other two, with one client on its side: \
           it reads, writes and asks for locks there, another client does so on the other side. In \
           the control of etcd and ZooKeeper a follower is cut off instead, in that of Redis the \
           primary demands a replica for each write.",
    measured: "Whether the cut-off node still leads, and whether both sides grant.",
    threshold: "Holds if the node that led leads no more, grants and writes nothing on its side, \
                and a holder there is told before the other side grants.",
};

/// Short, so that the majority frees the cut-off client's lock soon after its election.
const TTL: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the report of a loss on a loaded machine.
const TOLD: Duration = Duration::from_secs(20);
const ELECTION: Duration = Duration::from_secs(30);
const NO_ELECTION: Duration = Duration::from_secs(3);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if stage.store == Store::Redis {
        return two_primaries(stage).await;
    }
    match Service::start(stage.store).await? {
        Some(service) => minority(stage, &service).await,
        None => Ok(Outcome::cannot_be_asked("one node has no other side")),
    }
}

/// One of three nodes is cut off, with a client.
async fn minority(stage: &Stage, service: &Service) -> Result<Outcome, Failure> {
    let (left, right) = (service.side()?, service.side()?);
    let led = service.leader().await?;
    let (cut, limit) = stage.pick((led, ELECTION), ((led + 1) % 3, NO_ELECTION));
    let rest: Vec<_> = (0..3).filter(|node| *node != cut).collect();
    let key = stage.name("key");
    let inside = service.probe(&left, cut, &key).await?;
    let outside = service.probe(&right, rest[0], &key).await?;
    outside.write("old").await?;
    inside.read(true).await?;

    let trace = stage.trace("distlock");
    let name = stage.name("held");
    let (a, b) = (service.distlock(&left, &[cut]), service.distlock(&right, &rest));
    let url = service.url_of(&[cut]);
    let holder = MinorityHolder::take(&left, url, &trace, &name, TTL).await?;
    let fault = trace.fault("cut", "the node and A from the others");
    let others = [service.peers(cut), vec![right.place()]].concat();
    service.network().split(&[left.place(), service.place(cut)], &others)?;
    let new = service.leader_after(led, limit).await;
    let resigned = new.is_some();
    let (asked, key) = (stage.name("asked"), holder.until_next(&b, PATIENCE));
    let (seen, refused, next) = tokio::join!(look(&*inside, &*outside), ask(&a, &asked), key);
    let (next, told) = next?;
    service.network().heal()?;
    fault.healed();

    let checker = Checker::new().tokens(Grade::None);
    let report = checker.check(&trace.history())?;
    let kept = report.is_clean() && told && next;
    let grants_nothing = refused.is_some() && seen.write.is_err();
    let sentence = format!(
        "the leader {}; on the minority side a write {}, a read of that node alone answers {}, and \
         distlock grants {}; {}",
        if resigned { "has resigned" } else { "still leads" },
        if seen.write.is_ok() { "is taken" } else { "is not taken" },
        seen.stale.as_ref().map_or("nothing".into(), |value| format!("the {value} value")),
        if refused.is_some() { "nothing" } else { "a lock" },
        match kept {
            true => "its holder there knows of the loss before the other side grants",
            false => "its holder there is not told in time",
        },
    );
    let bare = Side::new("bare reads and writes", Nature::AsPrinted, seen.write.is_err(), {
        "one client on the minority side, after the other side has written a new value"
    });
    let bare = bare.story(seen.lines());
    let ours = Side::new(
        "distlock",
        Nature::Distlock,
        kept,
        match kept {
            true => "A on the minority side is told, then B is granted on the other side",
            false => "A and B are not told apart",
        },
    );
    let why = refused.unwrap_or_else(|| "it is granted".into());
    let ours = ours.evidence(format!("a new lock on the minority side: {why}"));
    let ours = ours.traced(trace.history(), &checker)?;
    let plot = plot(stage, &ours);
    let outcome = Outcome::holds_if(resigned && grants_nothing && kept, sentence);
    Ok(outcome.sides([bare, ours]).plots(plot))
}

/// A holds a lock of distlock on a side, and records the report of its loss.
struct MinorityHolder {
    told: watch::Receiver<bool>,
    _waiting: JoinHandle<()>,
    b: Scribe,
    name: String,
    ttl: Duration,
}

impl MinorityHolder {
    /// A takes the free lock.
    async fn take(
        side: &lock_lab::Side,
        url: String,
        trace: &Trace,
        name: &str,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let (entry, key) = (trace.client("A").asks(name), name.to_owned());
        let acquire = async move {
            let locks = distlock::connect(url).await?;
            locks.lock(key)?.ttl(ttl).acquire().await
        };
        let guard = side.run(acquire).await?;
        entry.granted(Some(guard.token().value()));
        entry.believes(|| guard.is_valid());
        let (tell, told) = watch::channel(false);
        let waiting = side.spawn(wait(guard, entry, tell));
        let (b, name) = (trace.client("B"), name.to_owned());
        Ok(Self { told, _waiting: waiting, b, name, ttl })
    }

    /// B waits for the lock on the other side. Returns whether B gets it, and whether A gets the
    /// report.
    async fn until_next(
        mut self,
        lock: &dyn Contestant,
        patience: Duration,
    ) -> Result<(bool, bool), Failure> {
        let entry = self.b.asks(&self.name);
        let hold = lock.client().await?.acquire(&self.name, self.ttl, patience).await?;
        entry.tried(hold.as_deref());
        let waiting = async { self.told.wait_for(|told| *told).await.is_ok() };
        let told = timeout(TOLD, waiting).await.unwrap_or(false);
        let granted = hold.is_some();
        if let Some(hold) = hold {
            entry.leaves(hold).await?;
        }
        Ok((granted, told))
    }
}

async fn wait(guard: LockGuard, entry: Entry, tell: watch::Sender<bool>) {
    let reason = guard.lost().await;
    entry.lost(Loss::Deadline, &reason.to_string());
    let _ = tell.send(true);
}

/// The results of both sides for one key.
struct Seen {
    write: Result<(), String>,
    linear: Result<String, String>,
    stale: Result<String, String>,
}

async fn look(inside: &dyn Probe, outside: &dyn Probe) -> Seen {
    let text = |error: Failure| error.to_string();
    // Both reads run at once: each waits for a node that may be silent.
    let newer = outside.write("new").await;
    let stale = inside.read(false).await.map_err(text);
    let (linear, write) = tokio::join!(inside.read(true), inside.write("wrong"));
    let write = write.map_err(text).and(newer.map_err(text));
    Seen { write, linear: linear.map_err(text), stale }
}

impl Seen {
    fn lines(&self) -> Vec<String> {
        let told = |what: &str, answer: &Result<String, String>| match answer {
            Ok(value) => format!("{what} answers: {value}"),
            Err(error) => format!("{what} fails: {error}"),
        };
        let written = self.write.clone().map(|()| "written".to_owned());
        vec![
            told("a write on the minority side", &written),
            told("a read of the majority from the minority side", &self.linear),
            told("a read of the cut-off node alone", &self.stale),
        ]
    }
}

/// Returns the reason why no lock is granted. `None` if one is granted.
async fn ask(lock: &OnSide, name: &str) -> Option<String> {
    let asked = async { lock.client().await?.acquire(name, TTL, Duration::ZERO).await };
    match timeout(Duration::from_secs(8), asked).await {
        Ok(Ok(Some(hold))) => {
            let _ = hold.release().await;
            None
        }
        Ok(Ok(None)) => Some("the lock is held".into()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("no answer".into()),
    }
}

/// A Redis primary is cut off, with a client.
async fn two_primaries(stage: &Stage) -> Result<Outcome, Failure> {
    let network = Network::new()?;
    let builder = RedisSentinels::builder().on(&network);
    let builder = match stage.is_swapped() {
        true => builder.min_replicas(1, Duration::from_secs(1)),
        false => builder,
    };
    let redis = builder.start().await?;
    let (left, right) = (Arc::new(network.side()?), Arc::new(network.side()?));
    let old = redis.primary().await?;
    let place = redis.node(old).place().ok_or("it stands in the network")?;
    // The sentinels are named before the cut: A could not ask them after it.
    let own = both_sides(stage, &redis, [&left, &right], OWN, "").await?;
    let waiting = both_sides(stage, &redis, [&left, &right], WAITING, "?wait_replicas=1").await?;
    let trace = stage.trace("SET NX PX");
    let faults = [&trace, &own.trace, &waiting.trace]
        .map(|trace| trace.fault("cut", "the primary and A from the others"));
    let others = [redis.peers(old), vec![right.place()]].concat();
    network.split(&[left.place(), place], &others)?;
    let new = redis.primary_after(old).await?;
    let mut printed = Vec::new();
    for (side, node) in [(&left, old), (&right, new)] {
        let keys = keys_at(&redis.node(node).url())?;
        let lock = Printed::new(keys, Take::OneStep, Give::CompareAndDel);
        printed.push(OnSide::new(lock, side).client().await?);
    }
    let printed =
        TwoSides { trace, label: "SET NX PX", nature: Nature::AsPrinted, clients: printed };
    let mut sides = Vec::new();
    for asked in [printed, own, waiting] {
        sides.push(asked.ask(&stage.name("lock")).await?);
    }
    faults.into_iter().for_each(Breakage::healed);
    let granted_once = sides[0].well;
    let plots: Vec<_> = sides.iter().filter_map(|side| plot(stage, side)).collect();
    let happened = Side::summaries(&sides);
    let sentence = format!("the old primary is cut off and a new one promoted: {happened}");
    Ok(Outcome::holds_if(granted_once, sentence).sides(sides).plots(plots))
}

const OWN: &str = "distlock, through the sentinels";
const WAITING: &str = "distlock, which waits for a replica";

/// Clients on both sides of a split: A and B.
struct TwoSides {
    trace: Trace,
    label: &'static str,
    nature: Nature,
    clients: Vec<Arc<dyn Player>>,
}

/// Connects clients of distlock on both sides.
async fn both_sides(
    stage: &Stage,
    redis: &RedisSentinels,
    sides: [&Arc<lock_lab::Side>; 2],
    label: &'static str,
    options: &str,
) -> Result<TwoSides, Failure> {
    let mut clients = Vec::new();
    for side in sides {
        let lock = Distlock::new(format!("{}{options}", redis.url()));
        clients.push(OnSide::new(lock, side).client().await?);
    }
    Ok(TwoSides { trace: stage.trace(label), label, nature: Nature::Distlock, clients })
}

impl TwoSides {
    /// A and B ask for the same lock.
    async fn ask(self, name: &str) -> Result<Side, Failure> {
        let mut lines = Vec::new();
        let mut holders = Vec::new();
        for (who, client) in ["A", "B"].into_iter().zip(&self.clients) {
            let entry = self.trace.client(who).asks(name);
            match client.acquire(name, PATIENCE, Duration::ZERO).await {
                Ok(Some(hold)) => {
                    entry.granted(hold.token());
                    lines.push(format!("{who} gets the lock on its side"));
                    holders.push((hold, entry));
                }
                Ok(None) => return Err("a lock that nobody has is held".into()),
                Err(error) => {
                    entry.ended(&error.to_string());
                    lines.push(format!("{who} gets no lock on its side: {error}"));
                }
            }
        }
        for (hold, entry) in &holders {
            entry.believes(|| hold.believes());
        }
        let granted = holders.len();
        let happened = format!("{granted} of 2 sides grant the same lock");
        let side = Side::new(self.label, self.nature, granted < 2, happened);
        Ok(side.story(lines).played(self.trace.history())?)
    }
}

fn plot(stage: &Stage, side: &Side) -> Option<Plot> {
    side.plot(&format!("A split of {}", stage.store), Topic::Failover)
}
