//! C41: monitoring notices a crash's leftovers, and they are cleaned up.

use std::time::Duration;

use distlock::{Entry, Locks};

use crate::{
    Actor, Claim, Failure, Figure, Nature, Outcome, Side, Stage, Time,
    scenario::{until_line, until_line_within},
};

pub(super) const CLAIM: Claim = Claim {
    number: 41,
    title: "Leftovers are seen and go",
    claimed: "What a crash leaves is noticed by monitoring and cleaned up asynchronously.",
    done: "A holder and a waiter of one process crash; another client lists the lock's queue, and \
           asks for nothing, until nobody is in it. In the control they live on.",
    measured: "How long the two stay in the list, in TTLs.",
    threshold: "Holds if both are seen after the crash, and gone within 4 TTLs.",
};

/// In TTLs.
const GONE_WITHIN: u32 = 4;

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let (monitor, name) = (stage.connect().await?, stage.name("lock"));
    let least = *monitor.guarantees().ttl.start();
    let ttl = least.max(stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(4)));
    let (url, key) = (stage.shared().await?.url(), name.clone());
    let home = Actor::start("crashes")?;
    let held = home.run(async move { enter(&url, &key, ttl).await }).await??;
    until_line(&monitor, &name, |line| line.len() == 2).await?;
    let time = Time::start();
    let living = match stage.is_swapped() {
        true => Some((home, held)),
        false => {
            home.kill(held);
            None
        }
    };
    let seen = monitor.inspect(&name).await?.len();
    let empty = |line: &[Entry]| line.is_empty();
    let gone = until_line_within(&monitor, &name, ttl * GONE_WITHIN, empty).await?.is_some();
    let took = time.since();
    let left = monitor.inspect(&name).await?.len();
    monitor.close().await?;
    drop(living);
    let ttls = took.as_secs_f64() / ttl.as_secs_f64();
    let happened = match gone {
        true => format!("{seen} entries are listed after it, and gone after {ttls:.1} TTLs"),
        false => format!("{left} of {seen} entries are still listed after {ttls:.1} TTLs"),
    };
    let side = Side::new("distlock", Nature::Distlock, gone, happened.clone());
    Ok(Outcome::holds_if(gone && seen == 2, happened)
        .side(side)
        .figure(Figure::count("until nothing is listed", ttls, "TTLs"))
        .figure(Figure::time("TTL", ttl)))
}

/// One client with a hold and a waiter.
async fn enter(
    url: &str,
    name: &str,
    ttl: Duration,
) -> Result<(Locks, distlock::LockGuard, tokio::task::JoinHandle<()>), Failure> {
    let locks = crate::connect::connect(url).await?;
    let guard = locks.lock(name)?.ttl(ttl).acquire().await?;
    let lock = locks.lock(name)?.ttl(ttl);
    let waiter = tokio::spawn(async move { drop(lock.acquire().await) });
    Ok((locks, guard, waiter))
}
