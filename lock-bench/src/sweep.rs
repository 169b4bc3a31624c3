//! How a cost grows.

use std::time::Duration;

use crate::{
    Failure, Ratio, Role, Rounds, Sweep, SweepPoint, compute,
    contender::Contender,
    counted::{Counted, counters},
    job::Job,
    stage::Stage,
    stand::Stand,
    target::Target,
};

/// The TTL of a lock without one of its own.
const TTL: Duration = Duration::from_secs(15);
/// By then a new hold has its watches: etcd's driver asks for one per lock that lasts, after 50 ms.
const SETTLE: Duration = Duration::from_secs(1);
/// The shortest and the longest time for which requests are counted while nothing changes. It ends
/// before etcd's driver lists what it holds, which it does once a minute.
const IDLE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// How many points a sweep will have.
pub(crate) fn points(stage: &Stage<'_>) -> usize {
    let Some((over, values)) = &stage.options.sweep else { return 0 };
    stage.stores.iter().map(|store| who(store, over).len() * values.len()).sum()
}

pub(crate) async fn play(stage: &Stage<'_>) -> Result<Vec<Sweep>, Failure> {
    let Some((over, values)) = &stage.options.sweep else { return Ok(Vec::new()) };
    let mut sweeps = Vec::new();
    for store in &stage.stores {
        for contender in who(store, over) {
            let label = &store.label;
            let mut points = Vec::new();
            for value in values {
                let name = format!("{over} = {value}");
                match point(stage, store, contender, (over.as_str(), *value), &name).await {
                    Ok(point) => points.push(point),
                    Err(failure) => {
                        // What the store admits no more of, it admits no more of later either.
                        let what = store.what(contender.name, &name);
                        stage.failed(&what, failure)?;
                        break;
                    }
                }
            }
            if !points.is_empty() {
                sweeps.push(sweep(over, label, contender, points));
            }
        }
    }
    Ok(sweeps)
}

fn sweep(over: &str, store: &str, by: Contender, points: Vec<SweepPoint>) -> Sweep {
    let usable = points.iter().filter(|point| point.rate > 0.0);
    let times: Vec<_> = usable.map(|point| (point.value, 1.0 / point.rate)).collect();
    Sweep {
        over: over.to_owned(),
        store: store.to_owned(),
        contender: by.name.to_owned(),
        exponent: compute::exponent(&times),
        points,
    }
}

/// distlock and the floor; distlock alone where locks are kept, and where a store is one process.
fn who(store: &Target, over: &str) -> Vec<Contender> {
    if over == "processes" && !store.has_processes() {
        return Vec::new();
    }
    let keeps = keeps(over);
    store.only(|role| role == Role::Distlock || role == Role::FloorLeast && !keeps)
}

fn keeps(over: &str) -> bool {
    ["held", "ttl"].contains(&over)
}

async fn point(
    stage: &Stage<'_>,
    store: &Target,
    contender: Contender,
    (over, value): (&str, f64),
    name: &str,
) -> Result<SweepPoint, Failure> {
    let workload = stage.options.swept(over, value);
    let held = if keeps(over) { workload.workers - 1 } else { 0 };
    let job = stage.job(store, contender, &workload);
    let job = Job { held, apart: over == "workers", ..job };
    let mut stand = Stand::open(stage, store, contender, name, job).await?;
    let idle_requests = match idle_time(workload.ttl.unwrap_or(TTL)) {
        Some(time) if held > 0 => idle(store, time).await?,
        _ => None,
    };
    let mut rates = Vec::new();
    for _ in 0..stage.options.rounds {
        rates.push(compute::rate(&stand.round().await?.turns));
    }
    let memory = stand.memory().filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
    stand.close().await?;
    let rate = Ratio::of(&Rounds(rates)).map_or(0.0, |rate| rate.median);
    Ok(SweepPoint { value, rate, memory, idle_requests })
}

/// For how long requests are counted. A client renews at fixed parts of the TTL, so whole TTLs have
/// the same number of renewals wherever they begin; of a shorter time, it depends on where it begins
/// whether it has one renewal or none. `None` if one TTL takes too long.
fn idle_time(ttl: Duration) -> Option<Duration> {
    let [shortest, longest] = IDLE;
    let time = ttl.mul_f64((shortest.as_secs_f64() / ttl.as_secs_f64()).ceil());
    Some(time).filter(|time| *time <= longest)
}

/// Requests per second while nothing changes. `None` where no server counts.
async fn idle(target: &Target, time: Duration) -> Result<Option<f64>, Failure> {
    if target.server().is_none() {
        return Ok(None);
    }
    lock_core::Clock::Boot.sleep(SETTLE).await;
    let Some(before) = counters(target.server()).await? else { return Ok(None) };
    lock_core::Clock::Boot.sleep(time).await;
    let Some(now) = counters(target.server()).await? else { return Ok(None) };
    let counted = Counted::of(target.scheme, Role::Distlock, &now.since(&before));
    Ok(counted.requests.map(|count| count as f64 / time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_rest_are_counted_for_whole_ttls() {
        for (ttl, time) in [(2, Some(6)), (5, Some(5)), (15, Some(15)), (30, Some(30)), (31, None)]
        {
            let time = time.map(Duration::from_secs);
            assert_eq!(idle_time(Duration::from_secs(ttl)), time, "{ttl} s");
        }
    }
}
