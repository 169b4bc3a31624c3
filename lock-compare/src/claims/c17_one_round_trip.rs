//! C17: an uncontended acquire is one round trip.

use std::{sync::Arc, time::Duration};

use lock_lab::Proxy;

use crate::{
    Claim, Contestant, Distlock, Failure, Figure, Give, Ground, Nature, Outcome, Printed,
    PrintedQueue, Side, Stage, Store, Take,
    keys::{self, Keys},
    scenario::{counters, counting, requests},
    time::Time,
};

pub(super) const CLAIM: Claim = Claim {
    number: 17,
    title: "One round trip without contention",
    claimed: "An uncontended acquire is one round trip: one transaction puts the key if it is absent \
              and reads the present owner.",
    done: "A client takes and releases a free lock over a line that delays all bytes by 40 ms in each \
           direction. Beside it a lock that sets the key and its expiry in two steps; on ZooKeeper, \
           whose nodes are born with their end, a queue of keys that takes a number first.",
    measured: "The shortest time of an acquire in round trips of 80 ms; requests of an acquire and \
               release, counted by the server (in databases statements). A round trip is the shortest \
               read of a key over the same line, in turns with the acquires.",
    threshold: "Holds if distlock needs fewer than 1.5 round trips.",
};

/// One-way delay. The lab's ZooKeeper deletes empty directories twice a second. An acquire that
/// must create one again takes three round trips. Pairs that take half a second could meet that
/// each time.
const DELAY: Duration = Duration::from_millis(40);
const TTL: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(30);
const PAIRS: u32 = 20;

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let Some(ground) = counting(stage).await? else {
        return Ok(Outcome::cannot_be_asked("there is no network on the way to it"));
    };
    let server = ground.server().ok_or("a server of our own is none")?;
    let proxy = Proxy::start(server.addr()).await?;
    let far = Ground::InUse { url: server.url_via(&proxy) };
    let space = keys::of(stage.store, &far.url()).await?;
    let line = space.connect().await?;
    let steps: Arc<dyn Contestant> = match stage.store {
        Store::ZooKeeper => Arc::new(PrintedQueue::new(space)),
        _ => Arc::new(Printed::new(space, Take::TwoSteps, Give::CompareAndDel)),
    };
    let distlock: Arc<dyn Contestant> = Arc::new(Distlock::new(far.url()));
    let (first, second) = stage.pick((&distlock, &steps), (&steps, &distlock));
    let first = Trips::of(&**first, stage, &ground, (&proxy, &*line), "first").await?;
    let second = Trips::of(&**second, stage, &ground, (&proxy, &*line), "second").await?;
    let sentence = format!("{}; {}", first.words(), second.words());
    Ok(Outcome::holds_if(first.is_one(), sentence)
        .figures(first.figures())
        .figures(second.figures())
        .sides([first.side(), second.side()]))
}

/// The cost of acquiring a free lock.
struct Trips {
    label: String,
    nature: Nature,
    /// The shortest acquire, in round trips.
    trips: f64,
    /// Requests of an acquire and a release.
    requests: f64,
    /// Times of the acquires, in milliseconds.
    times: Vec<String>,
}

impl Trips {
    async fn of(
        lock: &dyn Contestant,
        stage: &Stage,
        ground: &Ground,
        (proxy, line): (&Proxy, &dyn Keys),
        what: &str,
    ) -> Result<Self, Failure> {
        let (client, name) = (lock.client().await?, stage.name(what));
        let pair = async || -> Result<Duration, Failure> {
            let time = Time::start();
            let hold = client.acquire(&name, TTL, PATIENCE).await?;
            let taken = time.since();
            hold.ok_or("a free lock is not granted")?.release().await?;
            Ok(taken)
        };
        // Sets up the session, the statements and the scripts.
        pair().await?;
        line.get("line").await?;
        let before = counters(ground).await?;
        for _ in 0..PAIRS {
            pair().await?;
        }
        let since = counters(ground).await?.since(&before);
        proxy.delay(DELAY);
        let (mut times, mut round_trips) = (Vec::new(), Vec::new());
        for _ in 0..stage.quick_or_full(8, 12) {
            times.push(pair().await?);
            let time = Time::start();
            line.get("line").await?;
            round_trips.push(time.since());
        }
        proxy.delay(Duration::ZERO);
        let least = |times: &[Duration]| times.iter().min().map_or(0.0, Duration::as_secs_f64);
        Ok(Self {
            label: lock.label(),
            nature: lock.nature(),
            trips: least(&times) / least(&round_trips),
            requests: requests(stage.store, lock.nature(), &since) as f64 / f64::from(PAIRS),
            times: times.iter().map(|time| time.as_millis().to_string()).collect(),
        })
    }

    fn is_one(&self) -> bool {
        self.trips < 1.5
    }

    fn words(&self) -> String {
        let Self { label, trips, requests, .. } = self;
        format!(
            "{label}: {trips:.1} round trips for an acquire, {requests:.1} requests with the release"
        )
    }

    fn figures(&self) -> [Figure; 2] {
        let name = |what: &str| format!("{what}, {}", self.label);
        [
            Figure::count(name("round trips of an acquire"), self.trips, "round trips"),
            Figure::count(name("requests of acquire and release"), self.requests, "requests"),
        ]
    }

    fn side(self) -> Side {
        let happened = self.words();
        Side::new(&self.label, self.nature, self.is_one(), happened)
            .evidence(format!("the acquires took {} ms", self.times.join(", ")))
    }
}
