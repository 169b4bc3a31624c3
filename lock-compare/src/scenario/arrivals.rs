//! Waiters that arrive one after the other, and enter.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use distlock::Locks;
use lock_history::History;
use tokio::{task::JoinSet, time::sleep};

use super::requests::{counters, requests};
use crate::{
    Contestant, Distlock, Failure, Give, Ground, KeySpace, Nature, Player, Printed, Scribe, Store,
    Take, Trace,
    keys::{Counted, Sent},
};

/// Longer than any queue takes.
const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
const WORK: Duration = Duration::from_millis(3);
const LOOK: Duration = Duration::from_millis(3);

/// A lock with observable arrivals of waiters.
#[derive(Clone)]
pub(crate) enum Queued {
    /// distlock, with a client that reads the queue.
    Distlock(Distlock, Locks),
    /// One key that all clients want.
    OneKey { keys: Arc<dyn KeySpace>, watches: bool },
}

impl Queued {
    pub(crate) async fn distlock(url: &str) -> Result<Self, Failure> {
        Ok(Self::Distlock(Distlock::new(url), crate::connect::connect(url).await?))
    }

    fn printed(keys: Arc<dyn KeySpace>, watches: bool) -> Printed {
        let printed = Printed::new(keys, Take::OneStep, Give::CompareAndDel);
        if watches { printed.watching() } else { printed }
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Distlock(lock, _) => lock.label(),
            Self::OneKey { watches: true, .. } => "everyone watches one key".into(),
            Self::OneKey { .. } => "everyone polls one key every 10 ms".into(),
        }
    }

    pub(crate) fn nature(&self) -> Nature {
        match self {
            Self::Distlock(lock, _) => lock.nature(),
            Self::OneKey { keys, .. } => keys.nature(),
        }
    }

    /// Connects a client, and returns it with its counters.
    pub(crate) async fn client(&self) -> Result<Waiter, Failure> {
        Ok(match self {
            Self::Distlock(lock, _) => (lock.client().await?, None),
            Self::OneKey { keys, watches } => {
                let keys = Counted::new(keys.clone());
                let sent = keys.sent();
                (Self::printed(Arc::new(keys), *watches).client().await?, Some(sent))
            }
        })
    }

    /// Waits until the newest client is refused once more, or is in the queue behind `before`
    /// entries.
    async fn until_it_waits(
        &self,
        name: &str,
        before: usize,
        sent: Option<(&Sent, u64)>,
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
pub(crate) type Waiter = (Arc<dyn Player>, Option<Sent>);

/// The result of a queue.
pub(crate) struct Line {
    /// Pairs of waiters with the later one granted first.
    pub overtakings: usize,
    /// Milliseconds from the first release to the grant, by place.
    pub waits: Vec<f64>,
    /// Requests per grant after the first release, if a server counts them.
    pub requests: Option<f64>,
    /// Notifications per grant to watching clients, if the client is a bare one.
    pub wakes: Option<f64>,
    /// The trace.
    pub history: History,
}

/// Lets all clients except the first arrive while the first holds the lock. Then they enter.
pub(crate) async fn line(
    lock: &Queued,
    store: Store,
    counted: Option<&Ground>,
    trace: &Trace,
    name: &str,
    clients: &[Waiter],
) -> Result<Line, Failure> {
    let [(first, _), waiters @ ..] = clients else { return Err("a line needs clients".into()) };
    let entry = trace.client("holder").asks(name);
    let hold = first.acquire(name, TTL, PATIENCE).await?.ok_or("a free lock is not granted")?;
    entry.granted(hold.token());
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
    let wakes = || bare().map(Sent::wakes).sum::<u64>();
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
    let entry = scribe.asks(&name);
    let hold = player.acquire(&name, TTL, PATIENCE).await?.ok_or("it waits in vain")?;
    entry.granted(hold.token());
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
