//! Locks that a client takes after it held none for a while. Compares times, so it runs alone.

use std::{error::Error, time::Duration};

use lock_core::{Clock, Locks};
use lock_lab::Network;
use tokio::task::JoinSet;

use crate::{
    cluster,
    support::{beat::Beat, lab, open},
};
pub use crate::{
    leaders::leaders_are_killed_and_no_lock_is_lost,
    slow::a_lock_of_the_shortest_ttl_is_not_at_risk,
};

const CLIENTS: u64 = 6;
const TTL: Duration = Duration::from_secs(2);

type Failure = Box<dyn Error + Send + Sync>;
/// How long an acquire took after a pause, and right after another lock.
type Took = (Duration, Duration);

/// Pauses for 0.9 s to 2 s and takes a lock, which it keeps for a while, and then another one.
async fn pause_and_take(locks: &Locks, name: &str, round: u64) -> Result<Took, Failure> {
    let (guard, after_a_pause) = loop {
        tokio::time::sleep(Duration::from_millis(900 + round * 110 % 1200)).await;
        let (begun, beat) = (Clock::Boot.now(), Beat::start());
        let guard = locks.lock(name)?.acquire().await?;
        let after_a_pause = Clock::Boot.now().since(begun);
        tokio::time::sleep(TTL / 2).await;
        if guard.is_valid() {
            break (guard, after_a_pause);
        }
        // A lock of this TTL ends if the machine stands still.
        let late = beat.late();
        let why = format!("lost in round {round}, tasks are late by {late:?}: {guard:?}");
        assert!(late >= TTL / 4, "{why}");
    };
    guard.release().await?;
    let begun = Clock::Boot.now();
    let guard = locks.lock(name)?.acquire().await?;
    let at_once = Clock::Boot.now().since(begun);
    guard.release().await?;
    Ok((after_a_pause, at_once))
}

/// Of ten acquires nine are at least as quick.
fn most(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 9 / 10]
}

pub async fn a_lock_after_a_pause_is_as_quick_and_lasts() -> Result<(), Failure> {
    let network = Network::new()?;
    let cluster = cluster(lab(), &network).await?;
    let side = network.side()?;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let url = format!("{}?ttl={}s", cluster.url(), TTL.as_secs());
        clients.spawn(side.spawn(async move {
            let locks = open(&url).await;
            let mut took = Vec::new();
            for round in 0..lock_lab::size(12, 100) {
                took.push(
                    pause_and_take(&locks, &format!("paused-{client}"), client + round).await?,
                );
            }
            locks.close().await?;
            Ok::<_, Failure>(took)
        }));
    }
    let (mut after_pauses, mut at_once) = (Vec::new(), Vec::new());
    while let Some(ended) = clients.join_next().await {
        let (paused, direct): (Vec<_>, Vec<_>) = ended???.into_iter().unzip();
        after_pauses.extend(paused);
        at_once.extend(direct);
    }
    let (paused, direct) = (most(after_pauses), most(at_once));
    assert!(paused <= direct * 3, "{paused:?} after a pause, {direct:?} at once");
    Ok(())
}
