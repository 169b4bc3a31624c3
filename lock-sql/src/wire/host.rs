//! One host of a database.

use std::{sync::Arc, time::Duration};

use lock_core::Clock;

use crate::wire::{
    failure::Failure,
    given_client::Way,
    limit::Limit,
    link::Link,
    logins::{Logins, hash},
    verdict::Origin,
};

/// One host of a database, and the way to it.
pub(crate) struct Host<C: Link> {
    /// Its name and port, for people.
    pub(super) name: String,
    way: Way<C>,
    pub(super) logins: Logins<C::Options>,
}

/// A connection to a host that takes writes.
pub(super) struct Connected<C> {
    pub(super) connection: C,
    /// Where the server's data comes from, if it tells.
    pub(super) origin: Option<Origin>,
    /// The hash of the options that the host has accepted.
    pub(super) login: u64,
}

impl<C: Link> Host<C> {
    pub(crate) fn new(name: String, way: Way<C>) -> Arc<Self> {
        Arc::new(Self { name, way, logins: Logins::default() })
    }

    /// Whether a login was one with other options than the current ones.
    pub(super) fn is_former(&self, login: u64) -> bool {
        (self.way)().is_ok_and(|current| hash(&current) != login)
    }

    /// Connects with the options that are current now, and with those that the host accepted last
    /// if it refuses the login. A login that was refused a moment ago is not sent again.
    pub(super) async fn connect(&self, limit: Duration) -> Result<Connected<C>, Failure> {
        let limit = Limit::new(limit);
        limit.within(self.try_logins(&limit)).await.map_err(Failure::Down)?
    }

    /// Current options that are tried first leave half of the time to the others: a server may
    /// delay a refusal for longer than the limit.
    async fn try_logins(&self, limit: &Limit) -> Result<Connected<C>, Failure> {
        let login = self.logins.begin(|| (self.way)()).await.map_err(Failure::Barred)?;
        let list = login.options().map_err(|why| Failure::Login(why.into()))?;
        let mut part = (list.len() == 3).then(|| limit.half());
        let mut last = Failure::down("no login to try");
        for options in list {
            let connected = match part.take() {
                Some(part) => Clock::Boot.timeout(part, C::make(&options)).await,
                None => Some(C::make(&options).await),
            };
            last = match connected {
                Some(Ok((connection, origin))) => {
                    login.accepted(&options);
                    return Ok(Connected { connection, origin, login: hash(&options) });
                }
                Some(Err(failure)) => failure,
                None => {
                    login.unanswered(limit.whole);
                    continue;
                }
            };
            let Failure::Login(why) = &last else { break };
            login.refused(&options, why.to_string());
        }
        Err(last)
    }
}
