//! Leader election.

use std::{sync::Arc, time::Duration};

use super::{Leadership, runtime::Connected};
use crate::{Error, Leader, Observed, Owner, Result, api::options::options};

/// An election with its options, like [`crate::Election`]. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or looks"]
pub struct Election {
    connected: Arc<Connected>,
    election: crate::Election,
}

impl Election {
    pub(super) fn new(connected: &Arc<Connected>, election: crate::Election) -> Self {
        Self { connected: connected.clone(), election }
    }

    options!(|self| self.election.lock);

    /// Campaigns as this owner, like [`crate::Election::owner`].
    pub fn owner(self, owner: &Owner) -> Self {
        Self { election: self.election.owner(owner), ..self }
    }

    /// Waits until it leads, and then publishes `value`, like [`crate::Election::campaign`].
    pub fn campaign(&self, value: impl AsRef<[u8]>) -> Result<Leadership> {
        let leading = self.connected.wait("campaign", self.election.campaign(value))?;
        Ok(Leadership::new(&self.connected, leading))
    }

    /// Leads if no candidate leads or waits, like [`crate::Election::try_campaign`].
    pub fn try_campaign(&self, value: impl AsRef<[u8]>) -> Result<Option<Leadership>> {
        let leading = self.connected.wait("try_campaign", self.election.try_campaign(value))?;
        Ok(leading.map(|leading| Leadership::new(&self.connected, leading)))
    }

    /// Returns the present leader, like [`crate::Election::leader`].
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.connected.wait("leader", self.election.leader())
    }

    /// Observes the election from now on, like [`crate::Election::observe`].
    pub fn observe(&self) -> Result<Observer> {
        let observer = self.connected.wait("observe", self.election.observe())?;
        Ok(Observer { connected: self.connected.clone(), observer: Some(observer) })
    }
}

/// The leader, from one change to the next, like [`crate::Observer`]. As an iterator it waits for
/// each change, and ends after an error.
#[derive(Debug)]
pub struct Observer {
    connected: Arc<Connected>,
    /// `None` once it has ended.
    observer: Option<crate::Observer>,
}

impl Observer {
    /// Waits for the next change, for at most `limit`; `None` if there was none.
    ///
    /// # Errors
    ///
    /// Same as [`crate::Observer::next`], [`Error::Closed`] if there will be no more changes, and
    /// [`Error::Unsupported`] inside an async runtime.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Option<Leader>>> {
        let closed = || Error::closed(self.connected.locks.guarantees().store);
        let observer = self.observer.as_mut().ok_or_else(closed)?;
        let next = async { Ok(tokio::time::timeout(limit, observer.next()).await) };
        match self.connected.wait("observe", next)? {
            Ok(change) => change.unwrap_or_else(|| Err(closed())).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl Iterator for Observer {
    type Item = Observed;

    fn next(&mut self) -> Option<Observed> {
        let observer = self.observer.as_mut()?;
        let next = async { Ok(observer.next().await) };
        let change = self.connected.wait("observe", next).unwrap_or_else(|error| Some(Err(error)));
        if !matches!(change, Some(Ok(_))) {
            self.observer = None;
        }
        change
    }
}
