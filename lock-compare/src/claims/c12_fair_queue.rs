//! C12: the queue is fair, and a release wakes one client.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use distlock::Locks;
use lock_history::History;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Claim, Contestant, Distlock, Drawing, Failure, Figure, Give, Ground, KeySpace, Nature, Outcome,
    Player, Plot, Printed, Scribe, Series, Side, Stage, Store, Take, Topic, Trace, keys,
    printed::Tally,
    scenario::{counters, counting, requests},
};

pub(super) const CLAIM: Claim = Claim {
    number: 12,
    title: "A fair queue wakes one client",
    claimed: "A queue is first come, first served, and a release wakes one client; when everyone \
              watches the same key, a release wakes all of them.",
    done: "Clients arrive one after the other while the lock is held, and are let in. Beside \
           distlock everyone watches one key; on Redis and in databases, where nothing tells of a \
           key's end, everyone polls it.",
    measured: "Pairs of clients of which the later one was granted first; requests of all clients \
               per grant (in databases statements), counted by the server; how often bare clients \
               were told.",
    threshold: "Holds if distlock has no such pair, at most 1.5 wakes and, on etcd and ZooKeeper, at \
                most 6 requests per grant, and everyone on one key keeps none of that.",
};

const WAITERS: usize = 12;
const MOST_REQUESTS: f64 = 6.0;
const MOST_WAKES: f64 = 1.5;
/// Longer than any queue takes.
const TTL: Duration = Duration::from_secs(10);
const WORK: Duration = Duration::from_millis(3);
const LOOK: Duration = Duration::from_millis(3);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let counted = counting(stage).await?;
    let ground = match &counted {
        Some(ground) => ground,
        None => &*stage.shared().await?,
    };
    let herd = herd(stage, ground).await?;
    let queue = Queued::distlock(&ground.url()).await?;
    let (fair, herd) = stage.pick((&queue, &herd), (&herd, &queue));
    let fair = Lines::play(stage, fair, counted.as_ref(), "queue").await?;
    let herd = Lines::play(stage, herd, counted.as_ref(), "one key").await?;
    let seen = fair.keeps(stage.store) && !herd.keeps(stage.store);
    let plot = plot(stage.store, &fair, &herd);
    let sentence = format!("{}: {}; {}: {}", fair.name, fair.words(), herd.name, herd.words());
    let figures = [fair.figures(), herd.figures()].concat();
    let (fair, herd) = (fair.side(stage.store)?, herd.side(stage.store)?);
    Ok(Outcome::holds_if(seen, sentence).plot(plot).figures(figures).sides([fair, herd]))
}

fn plot(store: Store, fair: &Lines, herd: &Lines) -> Plot {
    let title = format!("The wait over the place in line on {store}");
    let (x, y) = ("place in line".into(), "ms until granted".into());
    let series = vec![fair.series(), herd.series()];
    Plot::new(title, Topic::Queue, Drawing::Lines { x, y, log: false, series })
}

/// The lock whose waiters all wake at a release.
async fn herd(stage: &Stage, ground: &Ground) -> Result<Queued, Failure> {
    // SQLite's clients poll a file, so a herd of watchers is simulated, as in memory.
    let is_simulated = stage.store.is_embedded();
    let store = if is_simulated { Store::Memory } else { stage.store };
    let watches = is_simulated || matches!(store, Store::Etcd | Store::ZooKeeper);
    Ok(Queued::OneKey { keys: keys::of(store, &ground.url()).await?, watches })
}

/// Several queues of one lock.
struct Lines {
    name: String,
    nature: Nature,
    lines: Vec<Line>,
}

impl Lines {
    async fn play(
        stage: &Stage,
        lock: &Queued,
        counted: Option<&Ground>,
        what: &str,
    ) -> Result<Self, Failure> {
        let (mut lines, mut clients) = (Vec::new(), Vec::new());
        for _ in 0..=WAITERS {
            clients.push(lock.client().await?);
        }
        for round in 0..stage.quick_or_full(3, 8) {
            let (name, trace) =
                (stage.name(&format!("{what}-{round}")), stage.trace(&lock.label()));
            lines.push(line(lock, stage.store, counted, &trace, &name, &clients).await?);
        }
        Ok(Self { name: lock.label(), nature: lock.nature(), lines })
    }

    fn overtakings(&self) -> usize {
        self.lines.iter().map(|line| line.overtakings).sum()
    }

    fn mean(&self, of: impl Fn(&Line) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.lines.iter().map(of).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
    }

    fn requests(&self) -> Option<f64> {
        self.mean(|line| line.requests)
    }

    fn wakes(&self) -> Option<f64> {
        self.mean(|line| line.wakes)
    }

    /// Whether clients enter in order of arrival, with one wake per grant.
    fn keeps(&self, store: Store) -> bool {
        let few = self.requests().is_none_or(|requests| requests <= MOST_REQUESTS);
        let is_told = matches!(store, Store::Etcd | Store::ZooKeeper);
        let one = self.wakes().is_none_or(|wakes| wakes <= MOST_WAKES);
        self.overtakings() == 0 && one && (few || !is_told)
    }

    fn words(&self) -> String {
        let mut words = format!("{} overtakings by {WAITERS} waiters", self.overtakings());
        if let Some(requests) = self.requests() {
            words += &format!(", {requests:.1} requests per grant");
        }
        if let Some(wakes) = self.wakes().filter(|wakes| *wakes > 0.0) {
            words += &format!(", {wakes:.1} clients woken per grant");
        }
        words
    }

    fn figures(&self) -> Vec<Figure> {
        let name = |what: &str| format!("{what}, {}", self.name);
        let overtakings = self.overtakings() as f64;
        let figure = |what, value: Option<f64>, unit| {
            value.map(|value| Figure::count(name(what), value, unit))
        };
        [
            figure("overtakings", Some(overtakings), "pairs"),
            figure("requests per grant", self.requests(), "requests"),
            figure("clients woken per grant", self.wakes(), ""),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The median wait at each place.
    fn series(&self) -> Series {
        let at = |place: usize| {
            let mut waits: Vec<f64> = self.lines.iter().map(|line| line.waits[place]).collect();
            waits.sort_by(f64::total_cmp);
            ((place + 1) as f64, waits[waits.len() / 2])
        };
        Series { name: self.name.clone(), points: (0..WAITERS).map(at).collect() }
    }

    fn side(self, store: Store) -> Result<Side, Failure> {
        let side = Side::new(&self.name, self.nature, self.keeps(store), self.words());
        let Some(line) = self.lines.into_iter().next() else { return Ok(side) };
        Ok(side.played(line.history)?)
    }
}

/// A lock with observable arrivals of waiters.
#[derive(Clone)]
enum Queued {
    /// distlock, with a client that reads the queue.
    Distlock(Distlock, Locks),
    /// One key that all clients want.
    OneKey { keys: Arc<dyn KeySpace>, watches: bool },
}

impl Queued {
    async fn distlock(url: &str) -> Result<Self, Failure> {
        Ok(Self::Distlock(Distlock::new(url), crate::connect::connect(url).await?))
    }

    fn label(&self) -> String {
        match self {
            Self::Distlock(lock, _) => lock.label(),
            Self::OneKey { watches: true, .. } => "everyone watches one key".into(),
            Self::OneKey { .. } => "everyone polls one key every 10 ms".into(),
        }
    }

    fn nature(&self) -> Nature {
        match self {
            Self::Distlock(lock, _) => lock.nature(),
            Self::OneKey { keys, .. } => keys.nature(),
        }
    }

    /// Connects a client, and returns it with its counters.
    async fn client(&self) -> Result<Waiter, Failure> {
        Ok(match self {
            Self::Distlock(lock, _) => (lock.client().await?, None),
            Self::OneKey { keys, watches } => {
                let lock = Printed::new(keys.clone(), Take::OneStep, Give::CompareAndDel);
                let lock = if *watches { lock.watching() } else { lock };
                (lock.client().await?, Some(lock.tally()))
            }
        })
    }

    /// Waits until the newest client is refused once more, or is in the queue behind `before`
    /// entries.
    async fn until_it_waits(
        &self,
        name: &str,
        before: usize,
        sent: Option<(&Tally, u64)>,
    ) -> Result<(), Failure> {
        match (self, sent) {
            (Self::Distlock(_, look), _) => {
                while look.inspect(name).await?.len() <= before {
                    sleep(LOOK).await;
                }
            }
            (_, Some((sent, refused))) => sent.until_refused(refused + 1).await,
            _ => {}
        }
        Ok(())
    }
}

/// A client, with its counters if it is a bare one.
type Waiter = (Arc<dyn Player>, Option<Tally>);

struct Line {
    /// Pairs of waiters with the later one granted first.
    pub overtakings: usize,
    /// Milliseconds from the first release to the grant, by place.
    pub waits: Vec<f64>,
    /// Requests per grant after the first release, if a server counts them.
    pub requests: Option<f64>,
    /// Notifications per grant to watching clients, if the client is a bare one.
    pub wakes: Option<f64>,
    pub history: History,
}

/// Lets all clients except the first arrive while the first holds the lock. Then they enter.
async fn line(
    lock: &Queued,
    store: Store,
    counted: Option<&Ground>,
    trace: &Trace,
    name: &str,
    clients: &[Waiter],
) -> Result<Line, Failure> {
    let [(first, _), waiters @ ..] = clients else { return Err("a line needs clients".into()) };
    let (hold, entry) = trace.client("holder").takes(&**first, name, TTL).await?;
    let (order, mut waiting) = (Order::default(), JoinSet::new());
    for (place, (player, sent)) in waiters.iter().enumerate() {
        let refused = sent.as_ref().map(|sent| (sent, sent.refused()));
        let scribe = trace.client(format!("place {}", place + 1));
        let (trace, order) = (trace.clone(), Arc::clone(&order));
        waiting.spawn(take(player.clone(), trace, scribe, name.to_owned(), place, order));
        lock.until_it_waits(name, place + 1, refused).await?;
    }
    let before = match counted {
        Some(ground) => Some(counters(ground).await?),
        None => None,
    };
    let bare = || waiters.iter().filter_map(|(_, sent)| sent.as_ref());
    let wakes = || bare().map(Tally::wakes).sum::<u64>();
    let (woken, released) = (wakes(), trace.now());
    entry.gives_back(hold).await?;
    while let Some(one) = waiting.join_next().await {
        one??;
    }
    let per_grant = |count: u64| count as f64 / waiters.len() as f64;
    let since = match (counted, before) {
        (Some(ground), Some(before)) => Some(counters(ground).await?.since(&before)),
        _ => None,
    };
    let order = order.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut waits = vec![0.0; waiters.len()];
    for (place, at) in &order {
        waits[*place] = at.saturating_sub(released) as f64 / 1e6;
    }
    Ok(Line {
        overtakings: overtakings(&order),
        waits,
        requests: since.map(|since| per_grant(requests(store, lock.nature(), &since))),
        wakes: bare().next().map(|_| per_grant(wakes() - woken)),
        history: trace.history(),
    })
}

/// The places in the order of their grants, with their times.
type Order = Arc<Mutex<Vec<(usize, u64)>>>;

async fn take(
    player: Arc<dyn Player>,
    trace: Trace,
    scribe: Scribe,
    name: String,
    place: usize,
    order: Order,
) -> Result<(), Failure> {
    let (hold, entry) = scribe.takes(&*player, &name, TTL).await?;
    let at = trace.now();
    order.lock().unwrap_or_else(PoisonError::into_inner).push((place, at));
    // The work that the lock protects.
    sleep(WORK).await;
    entry.gives_back(hold).await
}

fn overtakings(order: &[(usize, u64)]) -> usize {
    let later = |i: usize| order[i + 1..].iter().filter(move |(place, _)| *place < order[i].0);
    (0..order.len()).map(|i| later(i).count()).sum()
}
