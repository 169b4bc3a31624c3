//! Clocks and the arithmetic of deadlines. No other part of distlock may read a clock.
//!
//! A deadline starts when its request was *sent*: the store counts from the moment it acts, which
//! is later, so the holder's deadline is always the earlier one. A margin on top covers drift and
//! the time from "lost" to "stopped".
//!
//! | platform | clock | counts suspend | tested |
//! |---|---|---|---|
//! | Linux | `CLOCK_BOOTTIME` | yes | yes |
//! | macOS, Windows, others | `std::time::Instant` | depends on the platform | no |

#[cfg(target_os = "linux")]
mod boot;

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

/// A reading of a [`Clock`]. Readings of different clocks must not be compared. The default is
/// earlier than every reading.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// Later than every deadline.
    pub const NEVER: Self = Self(u64::MAX);

    /// The time from `earlier` to this instant; zero if it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl std::ops::Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The source of a driver's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Clock {
    /// The machine's monotonic clock that also counts the time while it was suspended. For every
    /// store outside this process: a server goes on counting while this machine sleeps.
    Boot,
    /// Tokio's clock: the monotonic clock, or a virtual one under `tokio::time::pause`. For locks
    /// in memory, so that tests do not have to wait.
    Tokio,
}

impl Clock {
    /// Reads the clock.
    pub fn now(self) -> Instant {
        match self {
            Self::Boot => Instant(boot::now()),
            Self::Tokio => Instant(tokio_nanos()),
        }
    }

    /// Waits until the clock has passed `deadline`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub async fn sleep_until(self, deadline: Instant) {
        loop {
            let left = deadline.since(self.now());
            if left.is_zero() {
                return;
            }
            if deadline == Instant::NEVER {
                return std::future::pending().await;
            }
            match self {
                Self::Boot => boot::sleep_until(deadline.0).await,
                Self::Tokio => tokio::time::sleep(left).await,
            }
        }
    }

    /// Waits for this long by this clock.
    ///
    /// # Cancel safety
    ///
    /// Same as [`sleep_until`](Self::sleep_until).
    pub async fn sleep(self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// Returns the future's output, or `None` if this much time passes by this clock before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the inner one.
    pub async fn timeout<T>(self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        let end = self.now() + limit;
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(end) => None,
        }
    }
}

/// The time of day, for people: "held since 14:03". It may jump, so no decision depends on it, with
/// one exception: whether the period of a mark is over on etcd and SQLite.
#[doc(hidden)]
#[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// A random part of a pause, between half and all, so that clients do not act at the same times.
pub fn jitter(pause: Duration) -> Duration {
    let random = Uuid::new_v4().as_u64_pair().0 % 1000;
    pause / 2 + pause.mul_f64(random as f64 / 2000.0)
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads tokio's clock")]
fn tokio_nanos() -> u64 {
    static START: OnceLock<tokio::time::Instant> = OnceLock::new();
    // Runtimes with their own virtual clocks may be behind the runtime that read first.
    const HEAD_START: Duration = Duration::from_secs(100 * 365 * 86_400);
    let now = tokio::time::Instant::now();
    let start = *START.get_or_init(|| now);
    nanos((now + HEAD_START).saturating_duration_since(start))
}

/// The boot clock of other systems is the monotonic one.
#[cfg(not(target_os = "linux"))]
mod boot {
    use std::{sync::OnceLock, time::Duration};

    #[allow(clippy::disallowed_methods, reason = "the one place that reads this clock")]
    pub(super) fn now() -> u64 {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        const HEAD_START: Duration = Duration::from_secs(86_400);
        super::nanos(START.get_or_init(std::time::Instant::now).elapsed() + HEAD_START)
    }

    pub(super) async fn sleep_until(deadline: u64) {
        let left = Duration::from_nanos(deadline.saturating_sub(now()));
        // Half the smallest margin: a deadline that passed during a suspend is noticed in time.
        tokio::time::sleep(left.min(Duration::from_millis(25))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::{at_risk, safe_until};

    #[test]
    fn the_margin_is_taken_from_the_send_time() {
        let sent = Clock::Boot.now();
        assert_eq!(
            safe_until(sent, Duration::from_secs(10)).since(sent),
            Duration::from_millis(9500)
        );
        assert_eq!(
            safe_until(sent, Duration::from_millis(200)).since(sent),
            Duration::from_millis(150)
        );
    }

    #[test]
    fn a_renewal_that_is_confirmed_in_time_is_no_risk() {
        for ttl in [200, 1_000, 15_000, 86_400_000].map(Duration::from_millis) {
            let sent = Clock::Boot.now();
            // The first one after a grant, which comes last, and its answer.
            let left = safe_until(sent, ttl).since(sent + ttl / 2 + ttl / 10);
            assert!(left > at_risk(ttl), "{ttl:?}: {left:?}");
            assert!(ttl / 3 > at_risk(ttl), "{ttl:?}: a late grant");
        }
    }

    #[tokio::test]
    async fn the_boot_timer_rings_not_before_its_time() {
        let deadline = Clock::Boot.now() + Duration::from_millis(30);
        Clock::Boot.sleep_until(deadline).await;
        assert!(Clock::Boot.now() >= deadline);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn waits_of_all_lengths_end() {
        let start = Clock::Boot.now();
        let mut waits = tokio::task::JoinSet::new();
        for number in 0..1000_u64 {
            // In no order, some alike, some already over.
            let deadline = start + Duration::from_millis(number * 37 % 100);
            waits.spawn(async move {
                Clock::Boot.sleep_until(deadline).await;
                assert!(Clock::Boot.now() >= deadline);
            });
        }
        let long = tokio::spawn(Clock::Boot.sleep_until(start + Duration::from_secs(3600)));
        while let Some(wait) = waits.join_next().await {
            wait.unwrap();
        }
        assert!(!long.is_finished());
        long.abort();
        assert!(long.await.unwrap_err().is_cancelled());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn many_waits_open_one_descriptor() {
        let timers = || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap();
            let targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
            targets.filter(|target| target.as_os_str() == "anon_inode:[timerfd]").count()
        };
        // Another test may be about to open it.
        while timers() == 0 {
            Clock::Boot.sleep(Duration::from_millis(1)).await;
        }
        let deadline = Clock::Boot.now() + Duration::from_secs(3600);
        let waits: Vec<_> =
            (0..100).map(|_| tokio::spawn(Clock::Boot.sleep_until(deadline))).collect();
        tokio::task::yield_now().await;
        assert_eq!(timers(), 1);
        drop(waits);
    }

    /// A clock that stops for a while and one that jumps look alike to each other.
    #[tokio::test(start_paused = true)]
    async fn waits_on_the_boot_clock_do_not_follow_tokios() {
        let (pause, start) = (Duration::from_millis(50), Clock::Boot.now());
        let hour = Clock::Boot.timeout(pause * 1200, tokio::time::sleep(Duration::from_secs(3600)));
        assert_eq!(hour.await, Some(()), "an hour of tokio's passes at once");
        Clock::Boot.sleep(pause).await;
        assert!(Clock::Boot.now().since(start) >= pause);
        assert_eq!(Clock::Boot.timeout(pause, std::future::pending::<()>()).await, None);
        assert!(Clock::Boot.now().since(start) >= pause * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_is_virtual_when_paused() {
        let start = Clock::Tokio.now();
        Clock::Tokio.sleep_until(start + Duration::from_secs(3600)).await;
        assert!(Clock::Tokio.now().since(start) >= Duration::from_secs(3600));
    }
}
