//! Times of several contenders, measured in turns, so that disturbances hit all of them.

use std::time::Duration;

use lock_core::BoxFuture;
use lock_lab::{AnyServer, MariaDb, Postgres};
use tokio::time::sleep;

use crate::{
    Contestant, Drawing, Failure, Ground, Plot, SpreadRow, Store, Topic, Verdict, time::Time,
};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
/// The control: one-way delay of the side that should be faster.
pub(crate) const FAR: Duration = Duration::from_millis(12);

/// Number of resampled draws for an interval.
const DRAWS: usize = 1000;

/// The work that is timed, once.
pub(crate) type Work = Box<dyn Fn() -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

pub(crate) struct Contender {
    pub name: String,
    pub work: Work,
}

impl Contender {
    /// A client that takes and releases a free lock. `away` is how far it is from its store, where
    /// no proxy can stand between the two.
    pub(crate) async fn of(
        label: impl Into<String>,
        lock: &dyn Contestant,
        name: String,
        away: Option<Duration>,
    ) -> Result<Self, Failure> {
        let client = lock.client().await?;
        let work: Work = Box::new(move || {
            let (client, name) = (client.clone(), name.clone());
            Box::pin(async move {
                if let Some(away) = away {
                    sleep(away).await;
                }
                let hold = client.acquire(&name, TTL, PATIENCE).await?;
                hold.ok_or("a free lock is not granted")?.release().await?;
                Ok(())
            })
        });
        Ok(Self { name: label.into(), work })
    }
}

/// Starts a store that keeps confirmed writes, as in production.
pub(crate) async fn durable(store: Store) -> Result<Ground, Failure> {
    let server = match store {
        Store::Postgres => AnyServer::Postgres(Postgres::builder().durable().start().await?),
        Store::MySql => AnyServer::MariaDb(MariaDb::builder().durable().start().await?),
        _ => return Ground::start(store).await,
    };
    Ok(Ground::Private(Box::new(server)))
}

/// The times of all contenders as one drawing.
pub(crate) fn plot(title: String, times: &[Times]) -> Plot {
    let rows = times.iter().map(Times::spread).collect();
    Plot::new(title, Topic::Latency, Drawing::Spread { y: "ms".into(), rows })
}

/// The verdict if all take more than `slower` times as long as Redis, or Redis more than `faster`
/// times as long as one of them.
pub(crate) fn verdict(ratios: &[Ratio], slower: f64, faster: f64) -> Verdict {
    match () {
        () if ratios.iter().all(|ratio| ratio.is_above(slower)) => Verdict::Holds,
        () if ratios.iter().any(|ratio| ratio.is_below(faster)) => Verdict::Differs,
        () => Verdict::NoDifference,
    }
}

pub(crate) fn words(times: &[Times], ratios: &[Ratio]) -> String {
    let words = times.iter().zip(ratios).map(|(one, ratio)| {
        let (low, high) = ratio.interval;
        format!("{} takes {:.2} times as long ({low:.2} to {high:.2})", one.name, ratio.value)
    });
    words.collect::<Vec<_>>().join("; ")
}

#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub name: String,
    /// Milliseconds by round.
    rounds: Vec<Vec<f64>>,
}

/// Lets each contender work `times` times in each round, after a round that does not count.
pub(crate) async fn in_turns(
    contenders: &[Contender],
    rounds: usize,
    times: usize,
) -> Result<Vec<Times>, Failure> {
    let mut all: Vec<_> = contenders
        .iter()
        .map(|contender| Times { name: contender.name.clone(), rounds: Vec::new() })
        .collect();
    for round in 0..=rounds {
        for (contender, taken) in contenders.iter().zip(&mut all) {
            let mut samples = Vec::with_capacity(times);
            for _ in 0..times {
                let time = Time::start();
                (contender.work)().await?;
                samples.push(time.since().as_secs_f64() * 1000.0);
            }
            if round > 0 {
                taken.rounds.push(samples);
            }
        }
    }
    Ok(all)
}

impl Times {
    pub(crate) fn median(&self) -> f64 {
        quantile(&mut self.rounds.concat(), 0.5)
    }

    pub(crate) fn spread(&self) -> SpreadRow {
        let mut all = self.rounds.concat();
        let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].map(|q| quantile(&mut all, q));
        SpreadRow { name: self.name.clone(), quantiles }
    }

    /// Returns the ratio of the medians, round by round: their median, and its 95 % interval.
    pub(crate) fn ratio_to(&self, other: &Self, seed: u64) -> Ratio {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let medians =
            pairs.map(|(a, b)| quantile(&mut a.clone(), 0.5) / quantile(&mut b.clone(), 0.5));
        let ratios: Vec<f64> = medians.collect();
        let mut random = Random(seed);
        let draw = |_| {
            let drawn = (0..ratios.len()).map(|_| ratios[random.below(ratios.len())]);
            quantile(&mut drawn.collect::<Vec<_>>(), 0.5)
        };
        let mut draws: Vec<f64> = (0..DRAWS).map(draw).collect();
        let interval = (quantile(&mut draws, 0.025), quantile(&mut draws, 0.975));
        Ratio { value: quantile(&mut ratios.clone(), 0.5), interval }
    }
}

/// A ratio of times with its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub value: f64,
    pub interval: (f64, f64),
}

impl Ratio {
    /// Whether the whole interval is above the threshold.
    pub(crate) fn is_above(self, threshold: f64) -> bool {
        self.interval.0 > threshold
    }

    /// Whether the whole interval is below 1 / threshold.
    pub(crate) fn is_below(self, threshold: f64) -> bool {
        self.interval.1 < 1.0 / threshold
    }
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or_default()
}

/// The generator `splitmix64`. The same seed gives the same intervals.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) >> 1).unwrap_or_default() % limit.max(1)
    }
}
