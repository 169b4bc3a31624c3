//! Leader election.

use std::time::Duration;

use super::{Leadership, runtime::On};
use crate::{Error, Leader, Observed, Owner, Result, api::options::options};

/// An election with its options, like [`crate::Election`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or looks"]
pub struct Election(pub(super) On<crate::Election>);

impl Election {
    options!(|self| self.0.it.lock);

    /// Campaigns as this owner, like [`crate::Election::owner`].
    pub fn owner(self, owner: &Owner) -> Self {
        Self(self.0.connected.on(self.0.it.owner(owner)))
    }

    /// Waits until it leads, and then publishes `value`, like [`crate::Election::campaign`].
    pub fn campaign(&self, value: impl AsRef<[u8]>) -> Result<Leadership> {
        self.0.connected.get("campaign", self.0.it.campaign(value)).map(Leadership)
    }

    /// Leads if no candidate leads or waits, like [`crate::Election::try_campaign`].
    pub fn try_campaign(&self, value: impl AsRef<[u8]>) -> Result<Option<Leadership>> {
        let leading = self.0.connected.wait("try_campaign", self.0.it.try_campaign(value))?;
        Ok(leading.map(|leading| Leadership(self.0.connected.on(Some(leading)))))
    }

    /// Returns the present leader, like [`crate::Election::leader`].
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.0.connected.wait("leader", self.0.it.leader())
    }

    /// Observes the election from now on, like [`crate::Election::observe`].
    pub fn observe(&self) -> Result<Observer> {
        self.0.connected.get("observe", self.0.it.observe()).map(Observer)
    }
}

/// The leader, from one change to the next, like [`crate::Observer`]. As an iterator it waits for
/// each change, and ends after an error.
#[derive(Debug)]
// `None` once it has ended.
pub struct Observer(On<Option<crate::Observer>>);

impl Observer {
    /// Waits for the next change, for at most `limit`; `None` if there was none.
    ///
    /// # Errors
    ///
    /// Same as [`crate::Observer::next`], [`Error::Closed`] if there will be no more changes, and
    /// [`Error::Unsupported`] inside an async runtime.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Option<Leader>>> {
        let closed = || Error::closed(self.0.connected.locks.guarantees().store);
        let observer = self.0.it.as_mut().ok_or_else(closed)?;
        let next = async { Ok(tokio::time::timeout(limit, observer.next()).await) };
        match self.0.connected.wait("observe", next)? {
            Ok(change) => change.unwrap_or_else(|| Err(closed())).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl Iterator for Observer {
    type Item = Observed;

    fn next(&mut self) -> Option<Observed> {
        let observer = self.0.it.as_mut()?;
        let next = async { Ok(observer.next().await) };
        let change =
            self.0.connected.wait("observe", next).unwrap_or_else(|error| Some(Err(error)));
        if !matches!(change, Some(Ok(_))) {
            self.0.it = None;
        }
        change
    }
}
