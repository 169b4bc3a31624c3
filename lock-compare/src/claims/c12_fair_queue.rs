//! C12: the queue is fair, and a release wakes one client.

use async_trait::async_trait;

use crate::{
    Claim, Drawing, Experiment, Failure, Figure, Ground, Outcome, Plot, Series, Side, Stage, Store,
    Topic, keys,
    scenario::{Line, Queued, counting, line},
};

/// C12.
pub(crate) struct FairQueue;

const CLAIM: Claim = Claim {
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

#[async_trait]
impl Experiment for FairQueue {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
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
}

fn plot(store: Store, fair: &Lines, herd: &Lines) -> Plot {
    Plot {
        title: format!("The wait over the place in line on {store}"),
        topic: Some(Topic::Queue),
        drawing: Drawing::Lines {
            x: "place in line".into(),
            y: "ms until granted".into(),
            log: false,
            series: vec![fair.series(), herd.series()],
        },
    }
}

/// The lock whose waiters all wake at a release.
async fn herd(stage: &Stage, ground: &Ground) -> Result<Queued, Failure> {
    // SQLite's clients poll a file, so a herd of watchers is simulated, as in memory.
    let is_simulated = stage.store.is_embedded();
    let store = if is_simulated { Store::Memory } else { stage.store };
    let watches = is_simulated || matches!(store, Store::Etcd | Store::ZooKeeper);
    Ok(Queued::OneKey { keys: keys::of(store, ground).await?, watches })
}

/// Several queues of one lock.
struct Lines {
    name: String,
    nature: crate::Nature,
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
