//! The leader of an election, reported to observers.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::mpsc;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{FencingToken, Leader, Observed, machine::runtime::HomeRuntime};

/// The leader, from one change to the next; get it from
/// [`Election::observe`](crate::Election::observe).
///
/// It survives reconnects, and never reports an older leader after a newer one. While the store is
/// out of reach it reports nothing. Afterwards it reports the present leader, and may leave out
/// leaders in between.
///
/// It compares the tokens of two leaders to find the older one. A store that was restored from a
/// backup counts from the past. An observer from before the restore then takes the store's leaders
/// for old ones and reports none, until the operator raises the [token
/// floor](crate::Locks::raise_token_floor), as must be done after a restore. A new observer reports
/// them at once.
pub struct Observer {
    changes: mpsc::Receiver<Observed>,
    home: Arc<HomeRuntime>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The last report.
    last: Option<Option<Leader>>,
    newest: Option<FencingToken>,
}

impl Observer {
    pub(super) fn new(changes: mpsc::Receiver<Observed>, home: Arc<HomeRuntime>) -> Self {
        let ended = Box::pin(home.ended().cancelled_owned());
        Self { changes, home, ended, last: None, newest: None }
    }

    /// Waits for the next change: the leader, or `None` if there is none. The stream ends after an
    /// error, and when the connection is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`](crate::Error::Denied), [`Error::Rejected`](crate::Error::Rejected): errors
    /// that another try cannot mend. [`Error::Closed`](crate::Error::Closed) when the runtime that
    /// connected has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Observed> {
        poll_fn(|cx| self.poll_change(cx)).await
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Option<Observed>> {
        loop {
            let change = match self.changes.poll_recv(cx) {
                Poll::Ready(change) => change,
                Poll::Pending => {
                    ready!(self.ended.as_mut().poll(cx));
                    Some(Err(self.home.closed()))
                }
            };
            match change {
                None => return Poll::Ready(None),
                Some(Ok(now)) if self.is_old(now.as_ref()) => {}
                Some(Ok(now)) => return Poll::Ready(Some(Ok(self.report(now)))),
                Some(Err(error)) => {
                    self.changes.close();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Whether this was reported already, or is older than the last report.
    fn is_old(&self, now: Option<&Leader>) -> bool {
        let older = now.is_some_and(|leader| Some(leader.token) < self.newest);
        older || self.last.as_ref().is_some_and(|last| last.as_ref() == now)
    }

    fn report(&mut self, now: Option<Leader>) -> Option<Leader> {
        self.newest = self.newest.max(now.as_ref().map(|leader| leader.token));
        self.last = Some(now.clone());
        now
    }
}

/// Same as [`Observer::next`].
#[cfg(feature = "stream")]
impl futures_core::Stream for Observer {
    type Item = Observed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Observed>> {
        self.poll_change(cx)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("last", &self.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::{Clock, Holder};

    fn leader(token: u64, value: &str) -> Option<Leader> {
        Some(Leader::new(FencingToken::new(token), value.into(), Holder::default()))
    }

    #[tokio::test]
    async fn nothing_is_reported_twice_and_nothing_old_after_something_newer() {
        let (tell, changes) = mpsc::channel(16);
        let home = HomeRuntime::new(Clock::Tokio, "a store", Location::caller());
        let mut observer = Observer::new(changes, home);
        let told = [
            None,
            None,
            leader(1, "a"),
            leader(1, "a"),
            leader(1, "b"),
            leader(3, "c"),
            leader(2, "late"),
            None,
            leader(1, "b"),
            leader(3, "c"),
        ];
        for now in told {
            tell.send(Ok(now)).await.unwrap();
        }
        drop(tell);
        let mut seen = Vec::new();
        while let Some(now) = observer.next().await {
            seen.push(now.unwrap());
        }
        let expected = [None, leader(1, "a"), leader(1, "b"), leader(3, "c"), None, leader(3, "c")];
        assert_eq!(seen, expected);
    }

    #[cfg(feature = "stream")]
    #[tokio::test]
    async fn a_stream_yields_the_changes_of_next_and_ends_after_an_error() {
        use futures_util::StreamExt as _;

        use crate::Error;

        let (tell, changes) = mpsc::channel(16);
        let home = HomeRuntime::new(Clock::Tokio, "a store", Location::caller());
        let observer = Observer::new(changes, home);
        for now in [None, None, leader(1, "a")] {
            tell.send(Ok(now)).await.unwrap();
        }
        tell.send(Err(Error::closed("memory"))).await.unwrap();
        let seen: Vec<_> = observer.collect().await;
        assert!(
            matches!(seen.as_slice(), [Ok(None), Ok(Some(_)), Err(Error::Closed { .. })]),
            "{seen:?}"
        );
    }
}
