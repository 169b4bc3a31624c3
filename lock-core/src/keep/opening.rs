//! The result of opening a session, for all callers that wait for it.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug)]
pub(super) enum Opening<S, E> {
    /// Why the last try failed, if one did.
    Trying(Option<E>),
    Done(Result<Arc<S>, E>),
}

/// The wait of one caller for a session. Dropping it ends the wait.
#[derive(Debug)]
pub struct OpeningWait<S, E>(pub(super) watch::Receiver<Opening<S, E>>);

impl<S, E: Clone> OpeningWait<S, E> {
    /// Waits for the result; `None` if the task that was to open the session is gone.
    pub async fn outcome(&mut self) -> Option<Result<Arc<S>, E>> {
        let done = self.0.wait_for(|opening| matches!(opening, Opening::Done(_))).await.ok()?;
        match &*done {
            Opening::Done(Ok(session)) => Some(Ok(session.clone())),
            Opening::Done(Err(error)) => Some(Err(error.clone())),
            Opening::Trying(_) => None,
        }
    }

    /// Why the last try failed, if it failed and another one is under way.
    pub fn last_failure(&self) -> Option<E> {
        match &*self.0.borrow() {
            Opening::Trying(failure) => failure.clone(),
            Opening::Done(_) => None,
        }
    }
}
