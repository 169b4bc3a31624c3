//! Work that stops with the lock.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use crate::{Error, Held, LockGuard, Result};

impl LockGuard {
    /// Does the work while the lock is held, and releases it afterwards, as
    /// [`Lock::run`](crate::Lock::run) does: for a caller that must know of the grant before the
    /// work begins, such as a service that answers "begun" or "busy". If the lock is lost, the work
    /// is dropped at its next await point and never polled again.
    ///
    /// ```no_run
    /// # async fn write(_: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<&'static str> {
    /// let Some(guard) = locks.lock("report")?.try_acquire().await? else { return Ok("busy") };
    /// tokio::spawn(guard.run(|held| async move { write(held.token().as_i64()).await }));
    /// Ok("begun")
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then releases the lock in the background.
    pub fn run<T, W, F>(self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        run_while_held(work, self)
    }
}

/// Does the work while the guard is valid, then releases. The work is the first parameter: a future
/// that is dropped before its first poll drops it first.
pub(crate) async fn run_while_held<T, W, F>(work: W, guard: LockGuard) -> Result<T>
where
    W: FnOnce(Held) -> F,
    F: Future<Output = T>,
{
    let done = done_while_held(work, &guard).await?;
    // A failed release is traced, and the lock is free after its TTL. It does not undo the work.
    let _ = guard.release().await;
    Ok(done)
}

/// Does the work while the guard is valid.
pub(crate) async fn done_while_held<T, W, F>(work: W, guard: &LockGuard) -> Result<T>
where
    W: FnOnce(Held) -> F,
    F: Future<Output = T>,
{
    let held = guard.held();
    let (lost, look) = (held.lost(), held.clone());
    let lost = async move { look.0.loss_error(lost.await) };
    let done = while_held(work(held.clone()), lost, || held.check()).await;
    held.0.client.after_loss(&done).await;
    done
}

/// Does the work until it is done, or `lost` is ready, or `check` fails.
pub(super) async fn while_held<T>(
    work: impl Future<Output = T>,
    lost: impl Future<Output = Error>,
    check: impl Fn() -> Result<()>,
) -> Result<T> {
    tokio::pin!(work, lost);
    // The clock is read before each poll: after a pause the timers ring late, and the work must not
    // run on in the meantime. `lost` is polled to be woken by it.
    poll_fn(|cx| match (lost.as_mut().poll(cx), check()) {
        (Poll::Ready(error), _) | (_, Err(error)) => Poll::Ready(Err(error)),
        (Poll::Pending, Ok(())) => work.as_mut().poll(cx).map(Ok),
    })
    .await
}
