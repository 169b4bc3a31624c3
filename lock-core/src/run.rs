//! Work that stops with the lock.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use crate::{Held, LockGuard, Result};

/// Does the work while the guard is valid, then releases.
pub(crate) async fn run_while_held<T, W, F>(guard: LockGuard, work: W) -> Result<T>
where
    W: FnOnce(Held) -> F,
    F: Future<Output = T>,
{
    let held = guard.held();
    let done = {
        let work = work(held.clone());
        let lost = held.lost();
        tokio::pin!(work, lost);
        // The clock is read before each poll: after a pause the timers ring late, and the work must
        // not run on in the meantime. The poll of `lost` is there to be woken by it.
        poll_fn(|cx| {
            let loss = lost.as_mut().poll(cx).map(|reason| held.0.loss_error(reason));
            match (loss, held.0.check()) {
                (Poll::Ready(error), _) | (_, Err(error)) => Poll::Ready(Err(error)),
                (Poll::Pending, Ok(())) => work.as_mut().poll(cx).map(Ok),
            }
        })
        .await?
    };
    // A failed release is traced and ends with the TTL; it does not undo the work.
    let _ = guard.release().await;
    Ok(done)
}
