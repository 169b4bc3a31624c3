//! C33: when a session is renewed.

use std::time::Duration;

use async_trait::async_trait;
use distlock::{LockGuard, Locks};
use tokio::time::sleep;

use crate::{Claim, Experiment, Failure, Figure, Nature, Outcome, Side, Stage, Time};

/// C33.
pub(crate) struct Renewal;

const CLAIM: Claim = Claim {
    number: 33,
    title: "Renewed at 2/3 of the TTL",
    claimed: "A session lives for 60 s by default and is renewed when 2/3 of its life are over.",
    done: "A holder's remaining time is read again and again: it rises with each renewal. In the \
           control the holder renews by hand at 2/3.",
    measured: "How much of the TTL is over when the lock is renewed, the median of some renewals.",
    threshold: "Holds from 0.55 to 0.8 of the TTL, differs below and above (etcd's own client \
                renews every third, too).",
};

const HOLDS: std::ops::RangeInclusive<f64> = 0.55..=0.8;
const LOOK: Duration = Duration::from_millis(10);
const RENEWALS: usize = 3;

#[async_trait]
impl Experiment for Renewal {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let locks = stage.connect().await?;
        let least = *locks.guarantees().ttl.start();
        let ttl = least.max(stage.quick_or_full(Duration::from_secs(3), Duration::from_secs(6)));
        let name = stage.name("lock");
        let by_hand = stage.pick(false, true);
        let mut shares = match by_hand {
            true => renewed_by_hand(&locks, &name, ttl).await?,
            false => renewed_by_itself(&locks, &name, ttl).await?,
        };
        shares.sort_by(f64::total_cmp);
        let share = shares[shares.len() / 2];
        let default = locks.guarantees().default_ttl;
        locks.close().await?;
        let happened = format!(
            "renewed when {share:.2} of the TTL are over; the default TTL is {} s",
            default.as_secs()
        );
        let side = Side::new("distlock", Nature::Distlock, true, happened.clone());
        Ok(Outcome::holds_if(HOLDS.contains(&share), happened)
            .side(side)
            .figure(Figure::count("of the TTL is over at a renewal", share, "TTL"))
            .figure(Figure::time("default TTL", default)))
    }
}

/// The shares of the TTL between renewals, as the holder sees its remaining time rise.
async fn renewed_by_itself(locks: &Locks, name: &str, ttl: Duration) -> Result<Vec<f64>, Failure> {
    let guard = locks.lock(name)?.ttl(ttl).acquire().await?;
    let shares = watch(&guard, ttl, || false).await?;
    guard.release().await?;
    Ok(shares)
}

async fn renewed_by_hand(locks: &Locks, name: &str, ttl: Duration) -> Result<Vec<f64>, Failure> {
    let guard = locks.lock(name)?.ttl(ttl).fixed_term().acquire().await?;
    let mut since = Time::start();
    let due = || {
        let due = since.since() >= ttl * 2 / 3;
        if due {
            since = Time::start();
        }
        due
    };
    let shares = watch(&guard, ttl, due).await?;
    guard.release().await?;
    Ok(shares)
}

async fn watch(
    guard: &LockGuard,
    ttl: Duration,
    mut due: impl FnMut() -> bool,
) -> Result<Vec<f64>, Failure> {
    let (mut shares, mut last, mut since) = (Vec::new(), guard.remaining(), Time::start());
    // The first renewal tells nothing: a session may be older than the lock.
    while shares.len() <= RENEWALS {
        if !guard.is_valid() {
            return Err("the lock was lost".into());
        }
        if due() {
            guard.renew().await?;
        }
        let now = guard.remaining();
        if now > last {
            shares.push(since.since().as_secs_f64() / ttl.as_secs_f64());
            since = Time::start();
        }
        last = now;
        sleep(LOOK).await;
    }
    shares.remove(0);
    Ok(shares)
}
