//! C40: the number of clients from which watching is cheaper than polling.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    Claim, Contestant, Drawing, Failure, Figure, Give, Nature, Outcome, Player, Plot, Series, Side,
    Stage, Store, Topic,
    scenario::{Rivals, counters, requests},
};

pub(super) const CLAIM: Claim = Claim {
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
const PAUSE: Duration = Duration::from_millis(10);
const HOLD: Duration = Duration::from_millis(10);
const TTL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(90);
const AT_FIRST: f64 = 1.1;
const AT_LAST: f64 = 1.3;

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let give = match stage.store {
        // An ephemeral node belongs to its own session: there is no owner to compare.
        Store::ZooKeeper => Give::BareDel,
        _ => Give::CompareAndDel,
    };
    let Some(rivals) = Rivals::of(stage, give, PAUSE).await? else {
        return Ok(Outcome::cannot_be_asked("no server counts the requests of its clients"));
    };
    let [queue, polling] = &rivals.locks;
    let queue = Costs::of(&**queue, stage, &rivals, "queue").await?;
    rivals.until_idle().await?;
    let polling = Costs::of(&**polling, stage, &rivals, "polling").await?;
    let (x, y) = ("clients".into(), "requests per acquisition".into());
    let series = vec![queue.series(), polling.series()];
    let title = format!("Requests per acquisition on {}", stage.store);
    let (crosses, words) = cross(&queue, &polling);
    Ok(rivals
        .judge(crosses, words)
        .plot(Plot::new(title, Topic::Cost, Drawing::Lines { x, y, log: true, series }))
        .figures(queue.figures())
        .figures(polling.figures())
        .sides([queue.side(), polling.side()]))
}

/// Whether the lines cross, and where.
fn cross(queue: &Costs, polling: &Costs) -> (bool, String) {
    let ratios: Vec<f64> = polling.each.iter().zip(&queue.each).map(|(a, b)| a / b).collect();
    let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
    let crossing = CLIENTS.iter().zip(&ratios).find(|(_, ratio)| **ratio > AT_FIRST);
    let words = format!("{}; {}", queue.words(), polling.words());
    let crosses = first <= AT_FIRST && last >= AT_LAST;
    let sentence = match crossing.filter(|_| crosses) {
        Some((clients, _)) => format!("polling costs more from {clients} clients on: {words}"),
        None => format!("the lines do not cross: {words}"),
    };
    (crosses, sentence)
}

/// The cost of a lock for each number of clients.
struct Costs {
    label: String,
    nature: Nature,
    each: Vec<f64>,
    /// Connections with all clients.
    connections: u64,
    watches: u64,
}

impl Costs {
    async fn of(
        lock: &dyn Contestant,
        stage: &Stage,
        rivals: &Rivals,
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
            let before = counters(&rivals.ground).await?;
            compete(&clients, &name, times).await?;
            let now = counters(&rivals.ground).await?;
            let count = requests(stage.store, lock.nature(), &now.since(&before));
            each.push(count as f64 / (number * times) as f64);
            stay = rivals.stay(&now);
        }
        Ok(Self {
            label: rivals.label(lock),
            nature: lock.nature(),
            each,
            connections: stay.0,
            watches: stay.1,
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
