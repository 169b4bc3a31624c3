//! C33: the time at which a session is renewed.

use std::time::Duration;

use distlock::{LockGuard, Locks};
use tokio::time::sleep;

use crate::{Claim, Failure, Figure, Nature, Outcome, Side, Stage, Time};

pub(super) const CLAIM: Claim = Claim {
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

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let locks = stage.connect().await?;
    let least = *locks.guarantees().ttl.start();
    let ttl = least.max(stage.quick_or_full(Duration::from_secs(3), Duration::from_secs(6)));
    let name = stage.name("lock");
    let by_hand = stage.pick(false, true);
    let (share, program) = tokio::join!(share(&locks, &name, ttl, by_hand), program(stage));
    let (share, program) = (share?, program?);
    let default = locks.guarantees().default_ttl;
    locks.close().await?;
    let happened = format!(
        "renewed when {share:.2} of the TTL are over; the default TTL is {} s",
        default.as_secs()
    );
    let side = Side::new("distlock", Nature::Distlock, true, happened.clone());
    let beside = program.iter().map(|side| format!("; {}", side.summary()));
    let sentence = happened + &beside.collect::<String>();
    Ok(Outcome::holds_if(HOLDS.contains(&share), sentence)
        .side(side)
        .sides(program)
        .figure(Figure::count("of the TTL is over at a renewal", share, "TTL"))
        .figure(Figure::time("default TTL", default)))
}

/// etcd's own program, on etcd.
async fn program(stage: &Stage) -> Result<Vec<Side>, Failure> {
    #[cfg(feature = "etcd")]
    if stage.store == crate::Store::Etcd {
        return etcd::program(stage).await;
    }
    let _ = stage;
    Ok(Vec::new())
}

#[cfg(feature = "etcd")]
mod etcd {
    use etcd_client::{Client, LeaseTimeToLiveResponse};

    use super::*;
    use crate::{
        etcdctl::{Etcdctl, INSTALL},
        go_mutex::connect,
        terminal::Terminal,
    };

    /// Seconds, as in etcd. The program checks every half second whether a third is over.
    const TTL: f64 = 4.0;
    const RENEWALS: usize = 3;

    /// The sessions of etcd's program, from the server's view of their leases.
    pub(super) async fn program(stage: &Stage) -> Result<Vec<Side>, Failure> {
        let url = stage.shared().await?.url();
        let Some(program) = Etcdctl::find(&url)? else {
            return Ok(vec![Side::new("etcdctl", Nature::Program, false, INSTALL)]);
        };
        let (version, client) = (program.version().await?, connect(&url).await?);
        let [elect, lock, watched] = ["elect", "default", "watched"].map(|what| stage.name(what));
        let elect = default_ttl(program.start(&["elect", &elect, "value"])?, &client).await?;
        let lock = default_ttl(program.start(&["lock", &lock])?, &client).await?;
        let share = share(program.start(&["lock", "--ttl", "4", &watched])?, &client).await?;
        let happened = format!(
            "its session lives for {elect} s by default in `elect` and {lock} s in `lock`, and is \
             renewed when {share:.2} of {TTL} s are over"
        );
        Ok(vec![Side::new(format!("etcdctl {version}"), Nature::Program, true, happened)])
    }

    async fn default_ttl(running: Terminal, client: &Client) -> Result<i64, Failure> {
        let (_running, lease) = lease(running).await?;
        Ok(look(client, lease).await?.granted_ttl())
    }

    /// The median time between two renewals, as a share of the TTL.
    async fn share(running: Terminal, client: &Client) -> Result<f64, Failure> {
        let (_running, lease) = lease(running).await?;
        let (mut shares, mut last) = (Vec::new(), look(client, lease).await?.ttl());
        let mut since = Time::start();
        while shares.len() <= RENEWALS {
            let now = look(client, lease).await?.ttl();
            if now < 0 {
                return Err("the program's lease is gone".into());
            }
            if now > last {
                shares.push(since.since().as_secs_f64() / TTL);
                since = Time::start();
            }
            last = now;
            sleep(LOOK).await;
        }
        shares.remove(0);
        shares.sort_by(f64::total_cmp);
        Ok(shares[shares.len() / 2])
    }

    /// Returns the lease in the key that the program prints.
    async fn lease(mut running: Terminal) -> Result<(Terminal, i64), Failure> {
        let key = running.line().await?;
        let lease = key.rsplit('/').next().unwrap_or_default();
        let lease = i64::from_str_radix(lease, 16)?;
        Ok((running, lease))
    }

    async fn look(client: &Client, lease: i64) -> Result<LeaseTimeToLiveResponse, Failure> {
        Ok(client.lease_client().time_to_live(lease, None).await?)
    }
}

/// The median time between two renewals, as a share of the TTL.
async fn share(locks: &Locks, name: &str, ttl: Duration, by_hand: bool) -> Result<f64, Failure> {
    let mut shares = match by_hand {
        true => renewed_by_hand(locks, name, ttl).await?,
        false => renewed_by_itself(locks, name, ttl).await?,
    };
    shares.sort_by(f64::total_cmp);
    Ok(shares[shares.len() / 2])
}

/// Returns the times between renewals as shares of the TTL. The holder sees a renewal as a rise of
/// its remaining time.
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
    // The first renewal does not count: a session may be older than the lock.
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
