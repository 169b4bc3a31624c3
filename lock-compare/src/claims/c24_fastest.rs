//! C24: Redis is the fastest.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_lab::{AnyServer, MariaDb, Postgres, Proxy, Redis};
use tokio::time::sleep;

use crate::{
    Claim, Contestant, Distlock, Drawing, Experiment, Failure, Figure, Ground, Missing, Nature,
    Outcome, Player, Plot, Side, Stage, Store, Topic, Verdict,
    rounds::{Contender, Times, Work, in_turns},
};

/// C24.
pub(crate) struct Fastest;

const CLAIM: Claim = Claim {
    number: 24,
    title: "Redis is the fastest",
    claimed: "Redis is the fastest, etcd and ZooKeeper are the safest.",
    done: "One client takes and releases a free lock, in turns on the store and on a Redis that keeps \
           nothing on disk; the other servers keep each write, as they do by default. The column of \
           Redis measures it against etcd and ZooKeeper. How safe each store is, C1, C8, C10 and C26 \
           show.",
    measured: "The time of an acquire and release: the ratio of the medians, round by round, with its \
               interval of 95 %.",
    threshold: "Holds if the store takes more than 3 times as long as Redis with all of the \
                interval; differs if Redis takes more than 1.25 times as long; else no difference.",
};

const SLOWER: f64 = 3.0;
const FASTER: f64 = 1.25;
const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
/// The control: one-way delay of the store that should be faster.
const FAR: Duration = Duration::from_millis(12);

#[async_trait]
impl Experiment for Fastest {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        redis_is_compiled_in()?;
        let redis = Redis::builder().appendonly(false).start().await?;
        let proxy = Proxy::start(redis.addr()).await?;
        let is_far = stage.is_swapped();
        let redis_url = if is_far { redis.url_via(&proxy) } else { redis.url() };
        let mut contenders = vec![contender(stage, Store::Redis, &redis_url, None).await?];
        let mut grounds = Vec::new();
        for store in others(stage.store) {
            let ground = durable(store).await?;
            // The store in memory is faster than Redis, and has no network between it and its
            // client.
            let away = (is_far && store == Store::Memory).then_some(FAR);
            contenders.push(contender(stage, store, &ground.url(), away).await?);
            grounds.push(ground);
        }
        if is_far && stage.store != Store::Memory {
            proxy.delay(FAR);
        }
        let (rounds, times) = stage.quick_or_full((12, 8), (30, 20));
        let times = in_turns(&contenders, rounds, times).await?;
        Ok(judge(stage, &times))
    }
}

fn redis_is_compiled_in() -> Result<(), Missing> {
    let remedy = "build with feature \"redis\"";
    let missing = || Missing::new("Redis is not compiled in", remedy);
    Store::Redis.is_compiled_in().then_some(()).ok_or_else(missing)
}

/// The stores to compare Redis with.
fn others(store: Store) -> Vec<Store> {
    let mut others = match store {
        Store::Redis => vec![Store::Etcd, Store::ZooKeeper],
        store => return vec![store],
    };
    others.retain(|store| store.is_compiled_in());
    others
}

/// A store that keeps confirmed writes, as in production.
async fn durable(store: Store) -> Result<Ground, Failure> {
    let server = match store {
        Store::Postgres => AnyServer::Postgres(Postgres::builder().durable().start().await?),
        Store::MySql => AnyServer::MariaDb(MariaDb::builder().durable().start().await?),
        _ => return Ground::start(store).await,
    };
    Ok(Ground::Private(Box::new(server)))
}

async fn contender(
    stage: &Stage,
    store: Store,
    url: &str,
    away: Option<Duration>,
) -> Result<Contender, Failure> {
    let client = Distlock::new(url).client().await?;
    let name = stage.name(store.scheme());
    Ok(Contender { name: store.to_string(), work: pair(client, name, away) })
}

fn pair(client: Arc<dyn Player>, name: String, away: Option<Duration>) -> Work {
    Box::new(move || {
        let (client, name) = (client.clone(), name.clone());
        Box::pin(async move {
            if let Some(away) = away {
                sleep(away).await;
            }
            let hold = client.acquire(&name, TTL, PATIENCE).await?;
            hold.ok_or("a free lock is not granted")?.release().await?;
            Ok(())
        })
    })
}

/// The first entry is Redis.
fn judge(stage: &Stage, times: &[Times]) -> Outcome {
    let (redis, others) = (&times[0], &times[1..]);
    let ratios: Vec<_> = others.iter().map(|one| one.ratio_to(redis, stage.seed)).collect();
    let verdict = match () {
        () if ratios.iter().all(|ratio| ratio.is_above(SLOWER)) => Verdict::Holds,
        () if ratios.iter().any(|ratio| ratio.is_below(FASTER)) => Verdict::Differs,
        () => Verdict::NoDifference,
    };
    let words: Vec<_> = others
        .iter()
        .zip(&ratios)
        .map(|(one, ratio)| {
            let (low, high) = ratio.interval;
            format!("{} takes {:.2} times as long ({low:.2} to {high:.2})", one.name, ratio.value)
        })
        .collect();
    let sentence = format!(
        "Redis takes {:.2} ms for an acquire and release; {}",
        redis.median(),
        words.join("; ")
    );
    let plot = Plot {
        title: format!("Acquire and release of a free lock, Redis and {}", stage.store),
        topic: Some(Topic::Latency),
        drawing: Drawing::Spread {
            y: "ms".into(),
            rows: times.iter().map(Times::spread).collect(),
        },
    };
    let figures = others.iter().zip(&ratios).map(|(one, ratio)| {
        Figure::ratio(format!("{} / Redis", one.name), ratio.value, ratio.interval)
    });
    let medians = times
        .iter()
        .map(|one| Figure::count(format!("acquire and release, {}", one.name), one.median(), "ms"));
    let sides = times.iter().map(|one| {
        let happened = format!("{:.2} ms for an acquire and release", one.median());
        Side::new(format!("distlock on {}", one.name), Nature::Distlock, true, happened)
    });
    Outcome::new(verdict, sentence).figures(figures.chain(medians)).sides(sides).plot(plot)
}
