//! The clients' load: exclusive, shared and permits, held briefly and long, and 5 % are given up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use distlock::{FencingToken, Gate, LockGuard, Locks, LossReason};
use lock_core::{Clock, Instant, LockKind};
use lock_history::{AttemptLog, ClientLog, Fault, Kind, Loss, Recorder};
use tokio::time::{sleep, timeout};

use crate::support::Random;

/// The permits of each semaphore.
const LIMIT: u32 = 3;
/// Time between a holder's checks of its lock.
const LOOK: Duration = Duration::from_millis(10);
/// Pause of a client after an immediate error.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest time between a holder's own notice of its loss and the report of the loss.
const TOLD: Duration = Duration::from_secs(10);
/// Time between a client's checks of its runtime, and the delay from which it reports a standstill.
const BEAT: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_millis(40);

/// The run's clock.
#[derive(Clone, Copy)]
pub struct Time(Instant);

impl Time {
    pub fn start() -> Self {
        Self(Clock::Boot.now())
    }

    /// The clock of a run that another process started.
    pub fn of_origin(nanos: u64) -> Self {
        Self(Instant::default() + Duration::from_nanos(nanos))
    }

    pub fn origin(self) -> u64 {
        nanos(self.0.since(Instant::default()))
    }

    pub fn now(self) -> u64 {
        nanos(self.since())
    }

    pub fn since(self) -> Duration {
        Clock::Boot.now().since(self.0)
    }
}

/// A lock's name, with the resource that it protects.
pub struct Name {
    pub name: Arc<str>,
    pub kinds: &'static [LockKind],
    gate: Gate<()>,
}

/// The names of a run on a store with these kinds.
pub fn names(kinds: &[LockKind]) -> Vec<Name> {
    const ALONE: &[LockKind] = &[LockKind::Exclusive];
    const MIXED: &[LockKind] = &[LockKind::Exclusive, LockKind::Shared, LockKind::Shared];
    const PERMITS: &[LockKind] = &[LockKind::Permits];
    let groups = [("alone", 16, ALONE), ("shared", 6, MIXED), ("permits", 4, PERMITS)];
    let kept = groups.into_iter().filter(|(_, _, wanted)| wanted.iter().all(|k| kinds.contains(k)));
    kept.flat_map(|(name, count, kinds)| {
        (0..count).map(move |n| Name {
            name: format!("chaos/{name}-{n}").into(),
            kinds,
            gate: Gate::default(),
        })
    })
    .collect()
}

/// State that all workers of a client share.
#[derive(Clone)]
pub struct Client {
    pub locks: Locks,
    pub log: Arc<ClientLog>,
    pub recorder: Recorder,
    pub time: Time,
    pub ttl: Duration,
    pub names: Arc<Vec<Name>>,
    pub stop: Arc<AtomicBool>,
    /// Whether holders write to the protected resources.
    pub writes: bool,
}

impl Client {
    /// Acquires and holds until the run is stopped.
    pub async fn work(self, mut random: Random) {
        while !self.stop.load(Ordering::Relaxed) {
            self.turn(&mut random).await;
        }
    }

    async fn turn(&self, random: &mut Random) {
        let place = random.below(self.names.len());
        let name = &self.names[place];
        let kind = match random.pick(name.kinds) {
            LockKind::Shared => Kind::Shared,
            LockKind::Permits => {
                Kind::Permits { permits: 1 + random.below(2) as u32, limit: LIMIT }
            }
            _ => Kind::Exclusive,
        };
        let wait = random.time(Duration::from_millis(200), self.ttl * 3);
        let log = self.log.asked(self.time.now(), name.name.clone(), kind);
        let acquire = self.acquire(name, kind, wait);
        // Half of the dropped attempts are dropped during the request, the others while they wait.
        let patience = match (random.percent(5), random.percent(50)) {
            (false, _) => Duration::MAX,
            (true, true) => random.time(Duration::ZERO, Duration::from_millis(5)),
            (true, false) => random.time(Duration::ZERO, self.ttl),
        };
        match timeout(patience, acquire).await {
            Ok(Ok(guard)) => self.hold(name, guard, log, random).await,
            Ok(Err(error)) => {
                log.ended(self.time.now(), error.to_string());
                sleep(PAUSE).await;
            }
            Err(_) => log.ended(self.time.now(), "dropped"),
        }
    }

    pub async fn acquire(
        &self,
        name: &Name,
        kind: Kind,
        wait: Duration,
    ) -> distlock::Result<LockGuard> {
        let (locks, name) = (&self.locks, &name.name);
        match kind {
            Kind::Exclusive => locks.lock(name)?.ttl(self.ttl).wait(wait).acquire().await,
            Kind::Shared => locks.shared(name)?.ttl(self.ttl).wait(wait).acquire().await,
            Kind::Permits { permits, limit } => {
                let semaphore = locks.semaphore(name, limit)?.ttl(self.ttl).wait(wait);
                semaphore.acquire_many(permits).await
            }
        }
    }

    async fn hold(&self, name: &Name, guard: LockGuard, log: AttemptLog, random: &mut Random) {
        log.granted(self.time.now(), Some(guard.token().value()));
        self.write(name, &guard, &log);
        let long = self.time.since()
            + match random.below(3) {
                0 => random.time(Duration::ZERO, self.ttl * 3),
                _ => random.time(Duration::ZERO, Duration::from_millis(10)),
            };
        match self.until_lost(&guard, long, &log).await {
            Some(reason) => {
                let loss = match reason {
                    LossReason::SessionEnded | LossReason::EntryGone | LossReason::Closed => {
                        Loss::Store
                    }
                    _ => Loss::Deadline,
                };
                log.lost(self.time.now(), loss, reason.to_string());
                // A late write, as by a holder that does not check its lock.
                self.write(name, &guard, &log);
                drop(guard);
                log.ended(self.time.now(), "lost");
            }
            None => self.release(guard, &log, random.percent(25)).await,
        }
    }

    /// Waits until a time, or until the loss. Records the last belief.
    async fn until_lost(
        &self,
        guard: &LockGuard,
        end: Duration,
        log: &AttemptLog,
    ) -> Option<LossReason> {
        let lost = guard.lost();
        tokio::pin!(lost);
        let mut believed = None;
        let reason = loop {
            let now = self.time.now();
            if !guard.is_valid() {
                believed.iter().for_each(|at| log.valid(*at, true));
                log.valid(self.time.now(), false);
                return Some(timeout(TOLD, lost).await.expect("who does not hold it is told so"));
            }
            believed = Some(now);
            let stop = self.stop.load(Ordering::Relaxed);
            let left = end.saturating_sub(self.time.since());
            if left.is_zero() || stop {
                break None;
            }
            match timeout(left.min(LOOK), &mut lost).await {
                Ok(reason) => break Some(reason),
                Err(_) => continue,
            }
        };
        believed.iter().for_each(|at| log.valid(*at, true));
        reason
    }

    async fn release(&self, guard: LockGuard, log: &AttemptLog, by_drop: bool) {
        log.releasing(self.time.now());
        if by_drop {
            drop(guard);
            return log.ended(self.time.now(), "guard dropped");
        }
        match guard.release().await {
            Ok(()) => log.released(self.time.now()),
            Err(error) => log.ended(self.time.now(), error.to_string()),
        }
    }

    /// Writes to the protected resource, which rejects a token older than the newest it has seen.
    fn write(&self, name: &Name, guard: &LockGuard, log: &AttemptLog) {
        let token: FencingToken = guard.token();
        if self.writes
            && guard.kind() == distlock::Kind::Exclusive
            && name.gate.enter(token, |()| log.wrote(self.time.now(), token.value())).is_err()
        {
            log.rejected(self.time.now(), token.value());
        }
    }

    /// Acquires each name alone, so that no other lock is in the way.
    ///
    /// # Errors
    ///
    /// Returns a text for each lock that cannot be acquired within the limit, with the reason.
    pub async fn acquire_all(&self, limit: Duration) -> Vec<String> {
        let turns = (0..self.names.len()).map(|place| {
            let (client, name) = (self.clone(), self.names[place].name.clone());
            let turn = async move { client.acquire_alone(place, limit).await };
            async move { turn.await.err().map(|error| format!("{name} cannot be had: {error}")) }
        });
        let turns: Vec<_> = turns.map(tokio::spawn).collect();
        let mut stuck = Vec::new();
        for turn in turns {
            stuck.extend(turn.await.expect("the turn does not panic"));
        }
        stuck
    }

    /// Tries again after an outage: a client may need a while to find its server again.
    async fn acquire_alone(&self, place: usize, limit: Duration) -> distlock::Result<()> {
        let name = &self.names[place];
        let kind = match name.kinds {
            [LockKind::Permits] => Kind::Permits { permits: LIMIT, limit: LIMIT },
            _ => Kind::Exclusive,
        };
        let end = self.time.since() + limit;
        loop {
            let log = self.log.asked(self.time.now(), name.name.clone(), kind);
            let left = end.saturating_sub(self.time.since());
            match self.acquire(name, kind, left).await {
                Ok(guard) => {
                    log.granted(self.time.now(), Some(guard.token().value()));
                    self.release(guard, &log, false).await;
                    return Ok(());
                }
                Err(error) => {
                    log.ended(self.time.now(), error.to_string());
                    if left.is_zero() || !error.is_transient() {
                        return Err(error);
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Records the standstills of this client's runtime.
    pub async fn watch_itself(self) {
        let mut last = self.time.since();
        while !self.stop.load(Ordering::Relaxed) {
            sleep(BEAT).await;
            let now = self.time.since();
            if now > last + BEAT + LATE {
                self.recorder.fault(Fault {
                    fault: Fault::STANDSTILL.to_owned(),
                    target: self.log.name().to_string(),
                    from: nanos(last),
                    until: Some(nanos(now)),
                });
            }
            last = now;
        }
    }
}

pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than 500 years")
}
