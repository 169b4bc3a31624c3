//! Work that stops with the lock.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use crate::{Error, Held, LockGuard, Result};

/// Does the work while the guard is valid, then releases.
pub(crate) async fn run_while_held<T, W, F>(guard: LockGuard, work: W) -> Result<T>
where
    W: FnOnce(Held) -> F,
    F: Future<Output = T>,
{
    let held = guard.held();
    let (lost, look) = (held.lost(), held.clone());
    let lost = async move { look.0.loss_error(lost.await) };
    let done = while_held(work(held.clone()), lost, || held.check()).await;
    held.0.client.after_loss(&done).await;
    let done = done?;
    // A failed release is traced, and the lock is free after its TTL. It does not undo the work.
    let _ = guard.release().await;
    Ok(done)
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
