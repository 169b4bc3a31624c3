//! Faults of a client of SQLite, for the executable properties: a file has no network to cut.

use std::{io, sync::Arc};

use tokio::sync::watch;

use crate::wire::{failure::Failure, turns::Limit};

/// Breaks one client's way to its file, as a disk that hangs would. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<watch::Sender<Trouble>>);

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Trouble {
    requests: bool,
    replies: bool,
    /// How often the replies that were cut were lost.
    lost: u64,
    crashed: bool,
}

impl Faults {
    /// Cuts requests and replies.
    pub fn cut(&self) {
        self.set(|trouble| (trouble.requests, trouble.replies) = (true, true));
    }

    /// Cuts replies only: requests take effect.
    pub fn cut_replies(&self) {
        self.set(|trouble| trouble.replies = true);
    }

    /// Ends a cut.
    pub fn heal(&self) {
        self.set(|trouble| (trouble.requests, trouble.replies) = (false, false));
    }

    /// Ends a cut, and loses the replies that it holds back, as the end of a connection does.
    pub fn lose_replies(&self) {
        self.set(|trouble| {
            (trouble.requests, trouble.replies) = (false, false);
            trouble.lost += 1;
        });
    }

    /// Cuts requests and replies for ever.
    pub fn crash(&self) {
        self.set(|trouble| trouble.crashed = true);
    }

    fn set(&self, change: impl FnOnce(&mut Trouble)) {
        self.0.send_modify(change);
    }

    pub(crate) fn delays_requests(&self) -> bool {
        let trouble = *self.0.borrow();
        trouble.requests || trouble.crashed
    }

    pub(crate) async fn request(&self, limit: &Limit) -> Result<(), Failure> {
        self.until(limit, |trouble| !trouble.requests && !trouble.crashed).await
    }

    pub(crate) async fn reply(&self, limit: &Limit) -> Result<(), Failure> {
        let lost = self.0.borrow().lost;
        self.until(limit, |trouble| !trouble.replies && !trouble.crashed).await?;
        match self.0.borrow().lost == lost {
            true => Ok(()),
            false => Err(Failure::Lost(sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()))),
        }
    }

    async fn until(&self, limit: &Limit, healed: impl Fn(&Trouble) -> bool) -> Result<(), Failure> {
        let mut state = self.0.subscribe();
        limit.within(state.wait_for(healed)).await.map(drop).map_err(Failure::Lost)
    }
}
