//! Waits that end when the caller of an attempt leaves.

use crate::Attempt;

/// Waits for the end of `work`; `None` if the attempt is cancelled before it. Without an attempt,
/// nothing cancels it.
pub async fn unless_cancelled<T>(
    caller: Option<&Attempt>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let Some(caller) = caller else { return Some(work.await) };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = caller.cancelled() => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn work_that_is_done_counts_also_after_a_cancellation() {
        let caller = Attempt::new();
        caller.cancel();
        assert_eq!(unless_cancelled(Some(&caller), ready(1)).await, Some(1));
        assert_eq!(unless_cancelled(Some(&caller), pending::<()>()).await, None);
        assert_eq!(unless_cancelled(None, ready(2)).await, Some(2));
    }
}
