//! C19: polling costs requests even when nothing changes.

use std::time::Duration;

use tokio::{task::JoinSet, time::sleep};

use crate::{
    BarSeries, Claim, Contestant, Drawing, Failure, Figure, Give, Nature, Outcome, Plot, Side,
    Stage, Topic,
    scenario::{Rivals, counters, requests},
    time::Time,
};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let Some(rivals) = Rivals::of(stage, Give::CompareAndDel, PAUSE).await? else {
        return Ok(Outcome::cannot_be_asked("no server counts the requests of its clients"));
    };
    let [queue, polling] = &rivals.locks;
    let queue = Waiting::of(&**queue, stage, &rivals, "queue").await?;
    rivals.until_idle().await?;
    let polling = Waiting::of(&**polling, stage, &rivals, "polling").await?;
    let drawing = Drawing::Bars {
        y: "requests per second".into(),
        labels: vec![stage.store.to_string()],
        series: vec![queue.bar(), polling.bar()],
    };
    let title = format!("{WAITERS} clients wait and nothing changes on {}", stage.store);
    let words = format!("{}; {}", queue.words(), polling.words());
    Ok(rivals
        .judge(queue.rate * FEWER <= polling.rate, words)
        .plot(Plot::new(title, Topic::Cost, drawing))
        .figures([queue.figure(), polling.figure()])
        .sides([queue.side(), polling.side()]))
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
        rivals: &Rivals,
        what: &str,
    ) -> Result<Self, Failure> {
        let name = stage.name(what);
        let holder = lock.client().await?;
        let hold = holder.acquire(&name, TTL, PATIENCE).await?.ok_or("it is not granted")?;
        let mut waiting = JoinSet::new();
        for _ in 0..WAITERS {
            let (client, name) = (lock.client().await?, name.clone());
            waiting.spawn(async move { client.acquire(&name, TTL, PATIENCE).await.map(drop) });
        }
        // The clients' requests at the start of a wait are not part of its cost.
        sleep(Duration::from_secs(1)).await;
        let (before, time) = (counters(&rivals.ground).await?, Time::start());
        sleep(stage.quick_or_full(Duration::from_millis(1500), Duration::from_secs(5))).await;
        let now = counters(&rivals.ground).await?;
        let took = time.since().as_secs_f64();
        let (connections, watches) = rivals.stay(&now);
        waiting.shutdown().await;
        hold.release().await?;
        Ok(Self {
            label: rivals.label(lock),
            nature: lock.nature(),
            rate: requests(stage.store, lock.nature(), &now.since(&before)) as f64 / took,
            connections,
            watches,
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
