//! Three servers whose leader is killed again and again while clients hold and wait. Compares times,
//! so it runs as a test of `alone`.

use std::{
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use lock_core::{Clock, Instant, LockGuard, Locks};
use lock_lab::{Network, Side};

use crate::{
    cluster,
    support::{PATIENCE, beat::Beat, lab, open, soon},
};

const WORKERS: usize = 4;
/// The longest that the servers grant, so that no session's time passes during an election.
const TTL: &str = "20s";
const TICK: Duration = Duration::from_secs(1);
const KEPT: usize = 5;
/// A grant of a dead leader may be on its way for a moment.
const IN_FLIGHT: Duration = Duration::from_millis(50);
/// The next grant comes no later than this after the new leader, also on a busy machine, and after a
/// long election: the pauses between tries to connect grow up to the time that it took.
const LATEST: Duration = Duration::from_secs(6);

/// What all workers see of one lock.
#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    overlaps: AtomicUsize,
    losses: Mutex<Vec<String>>,
    grants: Mutex<Vec<(Instant, u64)>>,
    done: AtomicBool,
}

impl Seen {
    fn grants(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Returns the first grant at or after this moment.
    fn first_after(&self, moment: Instant) -> Option<Instant> {
        let grants = self.grants.lock().unwrap();
        grants.iter().map(|(at, _)| *at).find(|at| *at >= moment)
    }
}

async fn work(locks: Locks, seen: Arc<Seen>) {
    while !seen.done.load(Relaxed) {
        let guard = match locks.lock("contended").unwrap().acquire().await {
            Ok(guard) => guard,
            Err(error) => panic!("an attempt failed: {error}"),
        };
        if seen.inside.fetch_add(1, Relaxed) != 0 {
            seen.overlaps.fetch_add(1, Relaxed);
        }
        seen.grants.lock().unwrap().push((Clock::Boot.now(), guard.token().value()));
        tokio::select! {
            reason = guard.lost() => seen.losses.lock().unwrap().push(reason.to_string()),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
        seen.inside.fetch_sub(1, Relaxed);
        drop(guard.release().await);
    }
}

/// A client in a place of its own, with locks that it keeps.
struct Client {
    side: Side,
    kept: Vec<LockGuard>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Client {
    async fn start(
        network: &Network,
        url: &str,
        n: usize,
        seen: &Arc<Seen>,
    ) -> Result<Self, Box<dyn Error>> {
        let (side, url) = (network.side()?, url.to_owned());
        let locks = side.run(async move { open(&url).await }).await;
        let mut kept = Vec::new();
        for k in 0..KEPT {
            kept.push(side.run(locks.lock(format!("kept-{n}-{k}"))?.acquire()).await?);
        }
        let work = |_| side.spawn(work(locks.clone(), seen.clone()));
        let workers = (0..WORKERS).map(work).collect();
        Ok(Self { side, kept, workers })
    }

    async fn end(self) -> Result<(), Box<dyn Error>> {
        for worker in self.workers {
            soon("a worker ends", worker).await?;
        }
        for guard in self.kept {
            assert!(guard.is_valid(), "a lock was lost that no TTL has ended: {guard:?}");
            self.side.run(guard.release()).await?;
        }
        Ok(())
    }
}

/// Waits for the first grant after a moment, and for some more.
async fn until_they_go_on(seen: &Seen, moment: Instant) -> Duration {
    let count = seen.grants();
    loop {
        if let Some(first) = seen.first_after(moment)
            && seen.grants() >= count + 3 * WORKERS
        {
            return first.since(moment);
        }
        let waited = Clock::Boot.now().since(moment);
        assert!(waited < PATIENCE, "no grant after {waited:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The least, the median, and the greatest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|n| times[n].as_millis());
    format!("{least}, {median}, {most} ms (least, median, most)")
}

pub async fn leaders_are_killed_and_no_lock_is_lost() -> Result<(), Box<dyn Error>> {
    let network = Network::new()?;
    let cluster = cluster(lab().tick(TICK), &network).await?;
    let (url, seen) = (format!("{}?ttl={TTL}", cluster.url()), Arc::new(Seen::default()));
    let mut clients = Vec::new();
    for n in 0..2 {
        clients.push(Client::start(&network, &url, n, &seen).await?);
    }
    let (mut elections, mut grants) = (Vec::new(), Vec::new());
    for _ in 0..lock_lab::size(3, 10) {
        let leader = cluster.leader().await?;
        let (killed, beat) = (Clock::Boot.now(), Beat::start());
        cluster.node(leader).kill();
        cluster.leader_after(leader).await?;
        let elected = Clock::Boot.now().since(killed);
        let granted = until_they_go_on(&seen, killed + IN_FLIGHT).await + IN_FLIGHT;
        let late = beat.late();
        let why = format!("{granted:?} with a leader after {elected:?}, tasks late by {late:?}");
        assert!(granted < elected * 2 + LATEST + late, "{why}");
        elections.push(elected);
        grants.push(granted);
        cluster.node(leader).restart().await?;
    }
    println!("a leader after {}; the next grant after {}", spread(elections), spread(grants));
    seen.done.store(true, Relaxed);
    for client in clients {
        client.end().await?;
    }
    assert_eq!(seen.overlaps.load(Relaxed), 0);
    assert_eq!(*seen.losses.lock().unwrap(), Vec::<String>::new());
    let grants = seen.grants.lock().unwrap();
    assert!(grants.windows(2).all(|pair| pair[0].1 < pair[1].1), "tokens do not rise");
    println!("{} grants", grants.len());
    Ok(())
}
