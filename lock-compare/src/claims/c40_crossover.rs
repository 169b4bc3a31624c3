//! C40: the number of clients from which watching is cheaper than polling.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Claim, Contestant, Distlock, Drawing, Experiment, Failure, Figure, Give, Ground, Nature,
    Outcome, Player, Plot, Printed, Series, Side, Stage, Store, Take, Topic, keys,
    scenario::{counters, counting, lasting, requests, until_idle},
};

/// C40.
pub(crate) struct Crossover;

const CLAIM: Claim = Claim {
    number: 40,
    title: "Where polling and watching cross",
    claimed: "Watching costs long-lived connections and the server's memory; polling is better at low \
              contention.",
    done: "1 to 16 clients take one lock in turns and hold it for 10 ms each, once by asking every \
           10 ms, and once in distlock's queue.",
    measured: "Requests per acquisition, counted by the server (in databases statements); connections \
               and watches with all clients.",
    threshold: "Holds if polling costs at most 1.1 times as many requests with 1 client, and at least \
                1.3 times as many with 16: the lines cross in between.",
};

const CLIENTS: [usize; 5] = [1, 2, 4, 8, 16];
const HOLD: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(90);
const AT_FIRST: f64 = 1.1;
const AT_LAST: f64 = 1.3;

#[async_trait]
impl Experiment for Crossover {
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
        let give = match stage.store {
            // An ephemeral node belongs to its own session: there is no owner to compare.
            Store::ZooKeeper => Give::BareDel,
            _ => Give::CompareAndDel,
        };
        let polling = Printed::new(space, Take::OneStep, give);
        let (queue, polling): (&dyn Contestant, &dyn Contestant) =
            (&Distlock::new(ground.url()), &polling);
        let (queue, polling) = stage.pick((queue, polling), (polling, queue));
        let idle = lasting(stage.store, &counters(&ground).await?);
        let queue = Costs::of(queue, stage, (&ground, idle), "queue").await?;
        until_idle(stage.store, &ground, idle).await?;
        let polling = Costs::of(polling, stage, (&ground, idle), "polling").await?;
        Ok(verdict(stage.store, &queue, &polling)
            .plot(plot(stage.store, &queue, &polling))
            .figures(queue.figures())
            .figures(polling.figures())
            .sides([queue.side(), polling.side()]))
    }
}

fn verdict(store: Store, queue: &Costs, polling: &Costs) -> Outcome {
    let ratios: Vec<f64> = polling.each.iter().zip(&queue.each).map(|(a, b)| a / b).collect();
    let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
    let crossing = CLIENTS.iter().zip(&ratios).find(|(_, ratio)| **ratio > AT_FIRST);
    let words = format!("{}; {}", queue.words(), polling.words());
    if store == Store::MySql {
        let why = "MySQL tells no client of a change, so distlock polls there, too";
        return Outcome::cannot_be_asked(format!("{why}: {words}"));
    }
    let crosses = first <= AT_FIRST && last >= AT_LAST;
    let sentence = match crossing.filter(|_| crosses) {
        Some((clients, _)) => format!("polling costs more from {clients} clients on: {words}"),
        None => format!("the lines do not cross: {words}"),
    };
    Outcome::holds_if(crosses, sentence)
}

fn plot(store: Store, queue: &Costs, polling: &Costs) -> Plot {
    Plot {
        title: format!("Requests per acquisition on {store}"),
        topic: Some(Topic::Cost),
        drawing: Drawing::Lines {
            x: "clients".into(),
            y: "requests per acquisition".into(),
            log: true,
            series: vec![queue.series(), polling.series()],
        },
    }
}

/// The cost of a lock for each number of clients.
struct Costs {
    label: String,
    nature: Nature,
    /// Requests per acquisition.
    each: Vec<f64>,
    /// Connections with all clients.
    connections: u64,
    watches: u64,
}

impl Costs {
    async fn of(
        lock: &dyn Contestant,
        stage: &Stage,
        (ground, idle): (&Ground, (u64, u64)),
        what: &str,
    ) -> Result<Self, Failure> {
        let (mut clients, mut each, mut stay) = (Vec::new(), Vec::new(), (0, 0));
        let times = stage.quick_or_full(4, 40);
        for number in CLIENTS {
            while clients.len() < number {
                let client = lock.client().await?;
                // Sets up the client's session and scripts.
                take_turns(client.clone(), stage.name(what), 1).await?;
                clients.push(client);
            }
            let name = stage.name(&format!("{what}-{number}"));
            let before = counters(ground).await?;
            compete(&clients, &name, times).await?;
            let now = counters(ground).await?;
            let count = requests(stage.store, lock.nature(), &now.since(&before));
            each.push(count as f64 / (number * times) as f64);
            stay = lasting(stage.store, &now);
        }
        Ok(Self {
            label: label(lock),
            nature: lock.nature(),
            each,
            connections: stay.0.saturating_sub(idle.0),
            watches: stay.1.saturating_sub(idle.1),
        })
    }

    fn words(&self) -> String {
        let last = self.each.len() - 1;
        format!(
            "{}: {:.1} requests per acquisition with 1 client, {:.1} with {}, and {} connections or \
             streams, {} watches",
            self.label,
            self.each[0],
            self.each[last],
            CLIENTS[last],
            self.connections,
            self.watches
        )
    }

    fn series(&self) -> Series {
        let points = CLIENTS.iter().zip(&self.each).map(|(clients, cost)| (*clients as f64, *cost));
        Series { name: self.label.clone(), points: points.collect() }
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |(clients, cost): (&usize, &f64)| {
            let name = format!("requests per acquisition, {clients} clients, {}", self.label);
            Figure::count(name, *cost, "requests")
        };
        CLIENTS.iter().zip(&self.each).map(figure).collect()
    }

    fn side(&self) -> Side {
        let (first, last) = (self.each[0], self.each[self.each.len() - 1]);
        Side::new(&self.label, self.nature, last <= first * 2.0, self.words())
    }
}

/// All clients take turns at once.
async fn compete(clients: &[Arc<dyn Player>], name: &str, times: usize) -> Result<(), Failure> {
    let mut turns = JoinSet::new();
    for client in clients {
        turns.spawn(take_turns(client.clone(), name.to_owned(), times));
    }
    while let Some(one) = turns.join_next().await {
        one??;
    }
    Ok(())
}

async fn take_turns(client: Arc<dyn Player>, name: String, times: usize) -> Result<(), Failure> {
    for _ in 0..times {
        let hold = client.acquire(&name, TTL, PATIENCE).await?.ok_or("it waits in vain")?;
        // The work that the lock protects.
        sleep(HOLD).await;
        hold.release().await?;
    }
    Ok(())
}

fn label(lock: &dyn Contestant) -> String {
    match lock.nature() {
        Nature::Distlock => "distlock's queue".into(),
        _ => "asking every 10 ms".into(),
    }
}
