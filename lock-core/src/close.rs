//! The close of a connection: one, whoever asks for it.

use std::time::Duration;

use tokio::sync::OnceCell;

use crate::{LossReason, Result, duration::shown, locks::Client};

/// How long it may take at the most.
const LIMIT: Duration = Duration::from_secs(5);

/// What the close came to, once it is over: the words of its error, as only one can have that.
#[derive(Default)]
pub(crate) struct Close(OnceCell<std::result::Result<(), String>>);

impl Client {
    /// Gives everything back, or waits until whoever asked first has done so.
    ///
    /// # Errors
    ///
    /// What the first close came to: what it did not get confirmed, a second one cannot confirm.
    pub(crate) async fn close(&self) -> Result<()> {
        let mut own = None;
        let closed = self.close.0.get_or_init(async || {
            let closed = self.give_all_back().await;
            let outcome = closed.as_ref().copied().map_err(ToString::to_string);
            own = Some(closed.map_err(|error| self.told("close", error)));
            outcome
        });
        let unconfirmed = closed.await.as_ref().err();
        match (own, unconfirmed) {
            (Some(own), _) => own,
            (None, None) => Ok(()),
            (None, Some(why)) => {
                let error =
                    self.unavailable("close", format!("the first close was not confirmed: {why}"));
                Err(self.told("close", error))
            }
        }
    }

    async fn give_all_back(&self) -> Result<()> {
        let mut held = self.alarm.drain();
        // Before the store hears of it, so that nobody is granted a lock that still counts as held.
        held.retain(|grant| grant.lease.validity().lose(LossReason::Closed));
        // These would be given back later: the close does it now.
        held.append(&mut self.returns.end());
        let closed = tokio::time::timeout(LIMIT, self.driver.close()).await;
        let closed = closed.unwrap_or_else(|_| {
            Err(self.unavailable("close", format!("not confirmed within {}", shown(LIMIT))))
        });
        held.iter().for_each(|grant| grant.trace_release(&closed));
        closed
    }
}
