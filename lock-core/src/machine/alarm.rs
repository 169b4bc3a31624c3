//! The alarm that notifies holders in time that they lost a lock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

use tokio::{runtime::Handle, sync::Notify, task::coop};

use super::end::End;
use crate::{Clock, Instant, keep::poison::lock};

/// An entry with a deadline.
pub(crate) trait Watched: Send + Sync + 'static {
    /// Handles the alarm. Returns when to ring again, or `None` when it is over.
    fn ring(self: Arc<Self>, now: Instant) -> Option<Instant>;

    /// The alarm's runtime has ended, and it rings no more.
    fn silenced(self: Arc<Self>);

    /// Where the alarm writes its place.
    fn slot(&self) -> &Slot;
}

/// One wait and one task for all deadlines of a client, however many locks it holds.
///
/// Renewals move a deadline without a call to the alarm: it rings at the old one, checks, and is
/// set again. So the usual acquire and release cost one insertion and one removal in a map each.
pub(crate) struct Alarm<W: Watched + ?Sized> {
    clock: Clock,
    state: Mutex<State<W>>,
    /// Separate, so that the task can wait for it without keeping the alarm alive.
    earlier: Arc<Notify>,
}

struct State<W: ?Sized> {
    next_id: u64,
    entries: BTreeMap<(Instant, u64), Weak<W>>,
    /// The entry that is ringing now; it may be added again.
    ringing: Option<Weak<W>>,
    /// When the task wakes next; an entry that is due earlier must wake it.
    armed: Instant,
}

/// An entry's place in the alarm; needed to remove it.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<(Instant, u64)>>);

impl<W: Watched + ?Sized> Alarm<W> {
    /// Starts the alarm's task; it ends when the alarm is dropped. If the runtime ends before,
    /// `end` has come, and then all entries in the alarm are silenced.
    pub(crate) fn start(clock: Clock, runtime: &Handle, end: &Arc<End>) -> Arc<Self> {
        let (entries, armed) = (BTreeMap::new(), Instant::NEVER);
        let state = Mutex::new(State { next_id: 0, entries, ringing: None, armed });
        let alarm = Arc::new(Self { clock, state, earlier: Arc::new(Notify::new()) });
        let task = Task { alarm: Arc::downgrade(&alarm), end: Some(end.clone()) };
        runtime.spawn(watch(task, clock, alarm.earlier.clone()));
        alarm
    }

    /// Rings `watched` at the time that `at` returns, and not at the present one, which `at` gets,
    /// unless it is removed before; `None` leaves the present one. `at` is called under the lock: of
    /// several calls at once, the last knows of the others.
    pub(crate) fn add(
        &self,
        watched: &Arc<W>,
        at: impl FnOnce(Option<Instant>) -> Option<Instant>,
    ) {
        let mut state = lock(&self.state);
        let mut slot = lock(&watched.slot().0);
        let Some(at) = at(slot.map(|(present, _)| present)) else { return };
        let key = (at, state.next_id);
        state.next_id += 1;
        state.entries.insert(key, Arc::downgrade(watched));
        if let Some(present) = slot.replace(key) {
            state.entries.remove(&present);
        }
        let earlier = at < state.armed;
        state.armed = state.armed.min(at);
        drop((slot, state));
        if earlier {
            self.earlier.notify_one();
        }
    }

    /// Removes `watched`.
    pub(crate) fn remove(&self, watched: &W) {
        let mut state = lock(&self.state);
        if let Some(key) = lock(&watched.slot().0).take() {
            state.entries.remove(&key);
        }
    }

    /// Removes all entries, and returns the ones that still live.
    pub(crate) fn drain(&self) -> Vec<Arc<W>> {
        let mut state = lock(&self.state);
        let entries = std::mem::take(&mut state.entries).into_values();
        entries.chain(state.ringing.clone()).filter_map(|watched| watched.upgrade()).collect()
    }

    /// Rings the first entry if it is due. Otherwise returns when to wake next.
    fn ring_first(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let next = state.entries.first_key_value().map_or(Instant::NEVER, |(key, _)| key.0);
        if next > now {
            // An entry that has come and gone leaves its time: one needless wake-up at that time
            // is cheaper than one for each short hold.
            state.armed = if state.armed > now { next.min(state.armed) } else { next };
            return Some(state.armed);
        }
        state.ringing = state.entries.pop_first().map(|(_, weak)| weak);
        let rung = state.ringing.as_ref().and_then(Weak::upgrade);
        if let Some(watched) = &rung {
            lock(&watched.slot().0).take();
        }
        drop(state);
        // Rung without the lock, as the handler may add and remove.
        if let Some(watched) = rung
            && let Some(again) = watched.clone().ring(now)
        {
            // It may have been added meanwhile, to ring earlier.
            let earlier = |present: Option<Instant>| present.is_some_and(|at| at <= again);
            self.add(&watched, |present| (!earlier(present)).then_some(again));
        }
        lock(&self.state).ringing = None;
        None
    }
}

/// The state of the alarm's task. A runtime drops it with its tasks when it ends.
struct Task<W: Watched + ?Sized> {
    alarm: Weak<Alarm<W>>,
    end: Option<Arc<End>>,
}

impl<W: Watched + ?Sized> Drop for Task<W> {
    fn drop(&mut self) {
        let Some(end) = self.end.take() else { return };
        // First: code that adds an entry after the alarm was emptied checks this then.
        end.come();
        let left = self.alarm.upgrade().map(|alarm| alarm.drain());
        left.into_iter().flatten().for_each(Watched::silenced);
    }
}

async fn watch<W: Watched + ?Sized>(mut task: Task<W>, clock: Clock, earlier: Arc<Notify>) {
    while let Some(next) = task.alarm.upgrade().map(|alarm| alarm.ring_first()) {
        let Some(next) = next else {
            // Other tasks run while a crowd rings.
            coop::consume_budget().await;
            continue;
        };
        tokio::select! {
            () = clock.sleep_until(next) => {}
            () = earlier.notified() => {}
        }
    }
    // The alarm has ended, not the runtime.
    task.end = None;
}

impl<W: Watched + ?Sized> Drop for Alarm<W> {
    fn drop(&mut self) {
        self.earlier.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counts {
        slot: Slot,
        rung: Arc<AtomicUsize>,
    }

    impl Watched for Counts {
        fn ring(self: Arc<Self>, _: Instant) -> Option<Instant> {
            self.rung.fetch_add(1, Ordering::Relaxed);
            None
        }

        fn silenced(self: Arc<Self>) {}

        fn slot(&self) -> &Slot {
            &self.slot
        }
    }

    #[tokio::test]
    async fn other_tasks_run_while_a_crowd_rings() {
        const CROWD: usize = 20_000;
        let rung = Arc::<AtomicUsize>::default();
        let alarm = Alarm::start(Clock::Boot, &Handle::current(), &Arc::default());
        let one = || Arc::new(Counts { slot: Slot::default(), rung: rung.clone() });
        let crowd: Vec<_> = (0..CROWD).map(|_| one()).collect();
        crowd.iter().for_each(|one| alarm.add(one, |_| Some(Instant::default())));
        let mut seen = vec![0];
        while seen.last() != Some(&CROWD) {
            tokio::task::yield_now().await;
            seen.push(rung.load(Ordering::Relaxed));
        }
        let most = seen.windows(2).map(|two| two[1] - two[0]).max();
        assert!(most < Some(CROWD / 2), "{most:?} without a break");
    }
}
