//! The boot clock of Linux, in nanoseconds, and one timer of the process for all waits on it.
//!
//! Tokio's timers stand still while the machine is suspended; a timerfd on the boot clock does not.
//! A thread reads the one descriptor, however many callers wait in however many runtimes.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    process,
    sync::{Mutex, OnceLock},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::keep::poison::lock;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// How often a wait looks at the clock if the process has no descriptor or no thread left.
const LOOK: Duration = Duration::from_millis(25);

/// Reads the clock.
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // The boot clock is never negative.
    now.tv_sec.unsigned_abs() * NANOS_PER_SECOND + now.tv_nsec.unsigned_abs()
}

/// Waits until `deadline`, or not so long if no timer can be had.
pub(super) async fn sleep_until(deadline: u64) {
    match Timer::get() {
        Some(timer) => Sleep { timer, deadline, id: None }.await,
        None => {
            let left = Duration::from_nanos(deadline.saturating_sub(now()));
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}

struct Timer {
    /// A fork of this process has the descriptor, but not the thread.
    process: u32,
    descriptor: OwnedFd,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    next_id: u64,
    wakers: BTreeMap<(u64, u64), Waker>,
}

impl Timer {
    /// Returns the timer, or `None` if this process has no descriptor or no thread left for it.
    fn get() -> Option<&'static Self> {
        static TIMER: OnceLock<Timer> = OnceLock::new();
        static STARTING: Mutex<()> = Mutex::new(());
        if let Some(timer) = TIMER.get() {
            return (timer.process == process::id()).then_some(timer);
        }
        let _one_at_a_time = STARTING.try_lock().ok()?;
        if TIMER.get().is_none() {
            let timer = Self::new().ok()?;
            let wake = || TIMER.wait().wake_when_due();
            thread::Builder::new().name("distlock-timer".to_owned()).spawn(wake).ok()?;
            let _ = TIMER.set(timer);
        }
        TIMER.get()
    }

    fn new() -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        Ok(Self { process: process::id(), descriptor, waits: Mutex::default() })
    }

    /// Sets the descriptor to the first of the waits, whose lock the caller holds.
    fn arm(&self, waits: &Waits) {
        let Some(((first, _), _)) = waits.wakers.first_key_value() else { return };
        // Zero would disarm it.
        let nanos = (*first).max(1);
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / NANOS_PER_SECOND).unwrap_or(i64::MAX),
            tv_nsec: (nanos % NANOS_PER_SECOND).cast_signed(),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        // With a valid time and an open timer it does not fail.
        let _ = timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &once);
    }

    fn wake_when_due(&self) {
        loop {
            if rustix::io::read(&self.descriptor, &mut [0; 8]).is_err() {
                // A signal, or a descriptor that somebody else has closed.
                thread::sleep(LOOK);
            }
            for waker in self.take_due(now()) {
                // A runtime's waker that panics must not end the waits of the others.
                let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            }
        }
    }

    fn take_due(&self, now: u64) -> Vec<Waker> {
        let mut waits = lock(&self.waits);
        let mut due = Vec::new();
        while let Some(first) = waits.wakers.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        self.arm(&waits);
        due
    }
}

/// A wait until a deadline.
struct Sleep {
    timer: &'static Timer,
    deadline: u64,
    /// Its place among the waits; `None` before the first poll.
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now() >= self.deadline {
            return Poll::Ready(());
        }
        let (timer, waker) = (self.timer, context.waker().clone());
        let mut waits = lock(&timer.waits);
        let id = *self.id.get_or_insert_with(|| {
            waits.next_id += 1;
            waits.next_id
        });
        let key = (self.deadline, id);
        let earlier = waits.wakers.insert(key, waker);
        if earlier.is_none() && waits.wakers.keys().next() == Some(&key) {
            timer.arm(&waits);
        }
        drop(waits);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // It is dropped after the lock: with it may go a task, and with that other waits.
            let _waker = lock(&self.timer.waits).wakers.remove(&(self.deadline, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[tokio::test]
    async fn a_waker_that_panics_ends_no_other_wait() {
        struct Panics;
        impl std::task::Wake for Panics {
            fn wake(self: std::sync::Arc<Self>) {
                panic!("on purpose");
            }
        }
        // Waits that come while another test starts the timer are tokio's.
        while Timer::get().is_none() {
            tokio::task::yield_now().await;
        }
        let deadline = Clock::Boot.now() + Duration::from_millis(30);
        let mut bad = Box::pin(Clock::Boot.sleep_until(deadline));
        let waker = std::sync::Arc::new(Panics).into();
        assert!(bad.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        Clock::Boot.sleep_until(deadline + Duration::from_millis(1)).await;
        Clock::Boot.sleep_until(Clock::Boot.now() + Duration::from_millis(1)).await;
    }
}
