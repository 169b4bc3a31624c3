//! C19: polling costs requests even when nothing changes.

use std::time::Duration;

use async_trait::async_trait;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    BarSeries, Claim, Contestant, Distlock, Drawing, Experiment, Failure, Figure, Give, Ground,
    Nature, Outcome, Plot, Printed, Side, Stage, Store, Take, Topic, keys,
    scenario::{counters, counting, lasting, requests, until_idle},
    time::Time,
};

/// C19.
pub(crate) struct PollingCosts;

const CLAIM: Claim = Claim {
    number: 19,
    title: "Polling costs, watching keeps a stream",
    claimed: "Polling costs requests even when nothing changes; watching costs a long-lived stream \
              instead.",
    done: "Clients wait for a lock that is held all the time, once by asking every 50 ms, and once in \
           distlock's queue.",
    measured: "Requests per second of all clients while nothing changes, counted by the server (in \
               databases statements), and the connections and watches that stay.",
    threshold: "Holds if waiting without polling costs at most a fifth of the requests.",
};

const WAITERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(50);
const TTL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(90);
const FEWER: f64 = 5.0;

#[async_trait]
impl Experiment for PollingCosts {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let Some(ground) = counting(stage).await? else {
            let why = "no server counts the requests of its clients";
            return Ok(Outcome::cannot_be_asked(why));
        };
        let space = keys::of(stage.store, &ground).await?;
        let polling = Printed::new(space, Take::OneStep, Give::CompareAndDel).polling(PAUSE);
        let (queue, polling): (&dyn Contestant, &dyn Contestant) =
            (&Distlock::new(ground.url()), &polling);
        let (queue, polling) = stage.pick((queue, polling), (polling, queue));
        let idle = lasting(stage.store, &counters(&ground).await?);
        let queue = Waiting::of(queue, stage, (&ground, idle), "queue").await?;
        until_idle(stage.store, &ground, idle).await?;
        let polling = Waiting::of(polling, stage, (&ground, idle), "polling").await?;
        Ok(verdict(stage.store, &queue, &polling)
            .plot(plot(stage.store, &queue, &polling))
            .figures([queue.figure(), polling.figure()])
            .sides([queue.side(), polling.side()]))
    }
}

fn verdict(store: Store, queue: &Waiting, polling: &Waiting) -> Outcome {
    let words = format!("{}; {}", queue.words(), polling.words());
    match store {
        // A client has nothing to watch.
        Store::MySql => Outcome::cannot_be_asked(format!(
            "MySQL tells no client of a change, so distlock polls there, too: {words}"
        )),
        _ => Outcome::holds_if(queue.rate * FEWER <= polling.rate, words),
    }
}

fn plot(store: Store, queue: &Waiting, polling: &Waiting) -> Plot {
    Plot {
        title: format!("{WAITERS} clients wait and nothing changes on {store}"),
        topic: Some(Topic::Cost),
        drawing: Drawing::Bars {
            y: "requests per second".into(),
            labels: vec![store.to_string()],
            series: vec![queue.bar(), polling.bar()],
        },
    }
}

/// The cost of waiting clients.
struct Waiting {
    label: String,
    nature: Nature,
    /// Requests per second of all clients.
    rate: f64,
    connections: u64,
    watches: u64,
}

impl Waiting {
    async fn of(
        lock: &dyn Contestant,
        stage: &Stage,
        (ground, idle): (&Ground, (u64, u64)),
        what: &str,
    ) -> Result<Self, Failure> {
        let name = stage.name(what);
        let holder = lock.client().await?;
        let hold = holder.acquire(&name, TTL, PATIENCE).await?;
        let hold = hold.ok_or("a free lock is not granted")?;
        let mut waiting = JoinSet::new();
        for _ in 0..WAITERS {
            let (client, name) = (lock.client().await?, name.clone());
            waiting.spawn(async move { client.acquire(&name, TTL, PATIENCE).await.map(drop) });
        }
        // The clients' requests at the start of a wait are not part of its cost.
        sleep(Duration::from_secs(1)).await;
        let (before, time) = (counters(ground).await?, Time::start());
        sleep(stage.quick_or_full(Duration::from_millis(1500), Duration::from_secs(5))).await;
        let now = counters(ground).await?;
        let took = time.since().as_secs_f64();
        let lasting = lasting(stage.store, &now);
        waiting.shutdown().await;
        hold.release().await?;
        Ok(Self {
            label: label(lock),
            nature: lock.nature(),
            rate: requests(stage.store, lock.nature(), &now.since(&before)) as f64 / took,
            connections: lasting.0.saturating_sub(idle.0),
            watches: lasting.1.saturating_sub(idle.1),
        })
    }

    fn words(&self) -> String {
        let Self { label, rate, connections, watches, .. } = self;
        format!(
            "{label}: {rate:.1} requests per second of {WAITERS} waiters, {connections} connections \
             or streams and {watches} watches stay"
        )
    }

    fn bar(&self) -> BarSeries {
        BarSeries { name: self.label.clone(), values: vec![self.rate] }
    }

    fn figure(&self) -> Figure {
        let name = format!("requests per second of {WAITERS} waiters, {}", self.label);
        Figure::count(name, self.rate, "requests/s")
    }

    fn side(&self) -> Side {
        Side::new(&self.label, self.nature, self.rate <= FEWER, self.words())
    }
}

fn label(lock: &dyn Contestant) -> String {
    match lock.nature() {
        Nature::Distlock => "distlock's queue".into(),
        _ => "asking every 50 ms".into(),
    }
}
