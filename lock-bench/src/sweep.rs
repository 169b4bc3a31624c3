//! How a cost grows.

use std::time::Duration;

use crate::{
    Failure, Options, Preset, Ratio, Role, Rounds, Sweep, SweepPoint, Workload, compute,
    contender::Contender,
    counted::{Counted, counters},
    job::Job,
    stage::Stage,
    stand::Stand,
    target::Target,
};

/// The locks that a sweep of TTLs keeps.
const KEPT: u32 = 100;
/// The TTL of a lock without one of its own.
const TTL: Duration = Duration::from_secs(15);
/// By then a new hold has its watches: etcd's driver asks for one per lock that lasts, after 50 ms.
const SETTLE: Duration = Duration::from_secs(1);
/// The shortest and the longest time for which requests are counted while nothing changes. It ends
/// before etcd's driver lists what it holds, which it does once a minute.
const IDLE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// Refuses a sweep that cannot be played.
pub(crate) fn check(options: &Options) -> Result<(), Failure> {
    let Some((over, values)) = &options.sweep else { return Ok(()) };
    values.iter().try_for_each(|value| Ok(load(options, over, *value).check()?))
}

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

/// The load of one point.
pub(crate) fn load(options: &Options, over: &str, value: f64) -> Workload {
    let base = options.custom.clone();
    let is_ours = base.is_none();
    let mut load = base.unwrap_or_else(|| Preset::Uncontended.workload(options.seconds));
    // A whole number.
    let count = value as u32;
    match over {
        "names" => (load.names, load.workers) = (count, count),
        "workers" => load.workers = count,
        "processes" => {
            load.processes = count;
            load.workers = if is_ours { count.saturating_mul(4) } else { load.workers.max(count) };
        }
        // One more takes turns beside those that are kept.
        "held" => (load.names, load.workers, load.processes) = (count + 1, count + 1, 1),
        _ => {
            load.ttl = Some(Duration::from_secs_f64(value));
            (load.names, load.workers, load.processes) = (KEPT + 1, KEPT + 1, 1);
        }
    }
    load
}

async fn point(
    stage: &Stage<'_>,
    store: &Target,
    contender: Contender,
    (over, value): (&str, f64),
    name: &str,
) -> Result<SweepPoint, Failure> {
    let workload = load(stage.options, over, value);
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

    fn of(over: &str, values: &[f64]) -> Options {
        Options { sweep: Some((over.to_owned(), values.to_vec())), ..Options::default() }
    }

    #[test]
    fn requests_at_rest_are_counted_for_whole_ttls() {
        for (ttl, time) in [(2, Some(6)), (5, Some(5)), (15, Some(15)), (30, Some(30)), (31, None)]
        {
            let time = time.map(Duration::from_secs);
            assert_eq!(idle_time(Duration::from_secs(ttl)), time, "{ttl} s");
        }
    }

    #[test]
    fn each_point_changes_what_is_swept() {
        let load = |over, value| load(&of(over, &[value]), over, value);
        assert_eq!(load("names", 8.0).workers, 8);
        assert_eq!((load("workers", 8.0).workers, load("workers", 8.0).names), (8, 1));
        assert_eq!((load("processes", 8.0).workers, load("processes", 8.0).processes), (32, 8));
        assert_eq!(load("held", 8.0).workers, 9);
        assert_eq!(load("ttl", 8.0).ttl, Some(Duration::from_secs(8)));
    }
}
