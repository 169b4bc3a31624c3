//! A task that works when something is due.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{Clock, Instant};

/// Waits until `due` by this clock, or until something else is due earlier. A ring of `earlier`
/// that a dropped wait has received is lost.
pub async fn until(clock: Clock, due: Instant, earlier: &Notify) {
    tokio::select! {
        biased;
        () = clock.sleep_until(due) => {}
        () = earlier.notified() => {}
    }
}

/// Works until the session is gone: each time that `due` names, and then also on work that is due
/// within `together`. `earlier` rings when work is due earlier than before, and when the session
/// ends.
pub async fn run<S, F: Future<Output = ()>>(
    clock: Clock,
    session: Weak<S>,
    earlier: Arc<Notify>,
    together: Duration,
    due: impl Fn(&S) -> Instant,
    work: impl Fn(Arc<S>) -> F,
) {
    loop {
        let Some(next) = session.upgrade().map(|session| due(&session)) else { return };
        until(clock, next, &earlier).await;
        let Some(session) = session.upgrade() else { return };
        if due(&session) <= clock.now() + together {
            work(session).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::keep::poison::lock;

    const SECOND: Duration = Duration::from_secs(1);
    const CLOCK: Clock = Clock::Tokio;

    #[tokio::test(start_paused = true)]
    async fn a_ring_ends_the_wait_for_later_work() {
        let (earlier, start) = (Notify::new(), CLOCK.now());
        earlier.notify_one();
        until(CLOCK, Instant::NEVER, &earlier).await;
        earlier.notify_one();
        until(CLOCK, start + SECOND, &earlier).await;
        assert_eq!(CLOCK.now(), start);
        until(CLOCK, start + SECOND, &earlier).await;
        assert!(CLOCK.now() >= start + SECOND);
    }

    /// Tokio's clock stands still while the machine is suspended. Here it is ahead.
    #[tokio::test(start_paused = true)]
    async fn work_is_due_by_its_own_clock() {
        let (never, due) = (Notify::new(), Clock::Boot.now() + SECOND / 20);
        until(Clock::Boot, due, &never).await;
        assert!(Clock::Boot.now() >= due);
    }

    #[tokio::test(start_paused = true)]
    async fn the_work_is_done_when_it_is_due_and_ends_with_the_session() {
        let start = CLOCK.now();
        let session = Arc::new(Mutex::new((start + SECOND, 0)));
        let earlier = Arc::new(Notify::new());
        let task = tokio::spawn(run(
            CLOCK,
            Arc::downgrade(&session),
            earlier.clone(),
            Duration::ZERO,
            |session: &Mutex<(Instant, u32)>| lock(session).0,
            |session| async move {
                let mut session = lock(&session);
                *session = (session.0 + SECOND, session.1 + 1);
            },
        ));
        tokio::time::sleep(SECOND * 5 / 2).await;
        assert_eq!(*lock(&session), (start + SECOND * 3, 2));
        *lock(&session) = (Instant::NEVER, 2);
        earlier.notify_one();
        tokio::time::sleep(SECOND * 5).await;
        assert_eq!(*lock(&session), (Instant::NEVER, 2));
        drop(session);
        earlier.notify_one();
        task.await.unwrap();
    }
}
