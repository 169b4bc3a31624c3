//! C24: Redis is the fastest.

use lock_lab::{Proxy, Redis};

use crate::{
    Claim, Distlock, Failure, Figure, Missing, Nature, Outcome, Side, Stage, Store,
    rounds::{Contender, FAR, Times, durable, in_turns, plot, verdict, words},
};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if !Store::Redis.is_compiled_in() {
        return Err(Missing::client_of(Store::Redis).into());
    }
    let redis = Redis::builder().appendonly(false).start().await?;
    let proxy = Proxy::start(redis.addr()).await?;
    let is_far = stage.is_swapped();
    let redis_url = if is_far { redis.url_via(&proxy) } else { redis.url() };
    let contender = async |store: Store, url: &str, away| {
        let name = stage.name(store.scheme());
        Contender::of(store.to_string(), &Distlock::new(url), name, away).await
    };
    let mut contenders = vec![contender(Store::Redis, &redis_url, None).await?];
    let mut grounds = Vec::new();
    for store in others(stage.store) {
        let ground = durable(store).await?;
        // The store in memory is faster than Redis, and has no network between it and its
        // client.
        let away = (is_far && store == Store::Memory).then_some(FAR);
        contenders.push(contender(store, &ground.url(), away).await?);
        grounds.push(ground);
    }
    if is_far && stage.store != Store::Memory {
        proxy.delay(FAR);
    }
    let (rounds, times) = stage.quick_or_full((12, 8), (30, 20));
    let times = in_turns(&contenders, rounds, times).await?;
    Ok(judge(stage, &times))
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

/// The first entry is Redis.
fn judge(stage: &Stage, times: &[Times]) -> Outcome {
    let (redis, others) = (&times[0], &times[1..]);
    let ratios: Vec<_> = others.iter().map(|one| one.ratio_to(redis, stage.seed)).collect();
    let sentence = format!(
        "Redis takes {:.2} ms for an acquire and release; {}",
        redis.median(),
        words(others, &ratios)
    );
    let title = format!("Acquire and release of a free lock, Redis and {}", stage.store);
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
    Outcome::new(verdict(&ratios, SLOWER, FASTER), sentence)
        .figures(figures.chain(medians))
        .sides(sides)
        .plot(plot(title, times))
}
