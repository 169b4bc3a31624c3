//! One host of a database.

use std::{sync::Arc, time::Duration};

use lock_core::{Clock, Instant};
#[cfg(feature = "postgres")]
use tokio::time::timeout;

#[cfg(feature = "postgres")]
use crate::wire::limit::GOODBYE;
use crate::{
    error::{refused_before, refused_login},
    wire::{
        failure::Failure, limit::Limit, link::Link, logins::Logins, own_client::Way,
        verdict::Origin,
    },
};

/// One host of a database, and the way to it.
pub(crate) struct Host<C: Link> {
    /// Its name and port, for people.
    name: Arc<str>,
    way: Way<C>,
    logins: Arc<Logins<C::Options>>,
}

/// A host that takes writes.
pub(super) struct Probe<C> {
    pub(super) connection: C,
    pub(super) origin: Option<Origin>,
}

impl<C: Link> Clone for Host<C> {
    fn clone(&self) -> Self {
        let Self { name, way, logins } = self;
        Self { name: name.clone(), way: way.clone(), logins: logins.clone() }
    }
}

impl<C: Link> Host<C> {
    pub(crate) fn new(name: &str, way: Way<C>) -> Self {
        Self { name: name.into(), way, logins: Arc::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Connects with the options that are current now, and with those that the host accepted last
    /// if it refuses the login. A login that was refused a moment ago is not sent again.
    pub(super) async fn login<T, F>(
        &self,
        limit: Duration,
        connect: impl Fn(C::Options) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let limit = Limit::new(limit);
        limit.within(self.try_logins(&limit, connect)).await.map_err(Failure::Down)?
    }

    /// Current options that are tried first leave half of the time to the others: a server may
    /// delay a refusal for longer than the limit.
    async fn try_logins<T, F>(
        &self,
        limit: &Limit,
        connect: impl Fn(C::Options) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let login = self.logins.begin(|| (self.way)()).await.map_err(Failure::Barred)?;
        let refused = |why| Failure::Barred(refused_before(C::DIALECT, why));
        let list = login.options().map_err(refused)?;
        let leaves_time = matches!(list.as_slice(), [first, _, _] if login.is_current(first));
        let mut part = leaves_time.then(|| limit.half());
        let mut last = Failure::down("no login to try");
        for options in list {
            let connected = match part.take() {
                Some(part) => Clock::Boot.timeout(part, connect(options.clone())).await,
                None => Some(connect(options.clone()).await),
            };
            last = match connected {
                Some(Ok(connected)) => {
                    login.accepted(&options);
                    return Ok(connected);
                }
                Some(Err(failure)) => failure,
                None => {
                    login.unanswered(limit.whole());
                    continue;
                }
            };
            let Failure::Barred(error) = &last else { break };
            let Some(why) = refused_login(C::DIALECT, error) else { break };
            login.refused(&options, why);
        }
        Err(last)
    }

    /// Whether a connection whose login began then has other options than the current ones.
    pub(super) fn is_former(&self, began: Instant) -> bool {
        (self.way)().is_ok_and(|current| self.logins.are_former(began, &current))
    }

    /// Makes a connection.
    pub(super) async fn make(&self, limit: Duration) -> Result<C, Failure> {
        self.login(limit, |options| async move { C::make(&options).await }).await
    }

    /// The options that the host accepted last.
    #[cfg(feature = "postgres")]
    pub(super) fn accepted(&self) -> Option<C::Options> {
        self.logins.last_accepted()
    }

    /// Makes a connection and ends it. Returns the options that the host accepts.
    #[cfg(feature = "postgres")]
    pub(super) async fn check(&self, limit: Duration) -> Result<C::Options, Failure> {
        let check = |options: C::Options| async move {
            let connection = C::make(&options).await?;
            let _ = timeout(GOODBYE, connection.close()).await;
            Ok(options)
        };
        self.login(limit, check).await
    }

    /// Makes a connection, and asks where the server's data comes from.
    pub(super) async fn probe(&self, limit: Duration) -> Result<Probe<C>, Failure> {
        let probe = |options| async move {
            let mut connection = C::make(&options).await?;
            // A user may not be allowed to ask.
            let origin = connection.origin().await.ok().flatten();
            Ok(Probe { connection, origin })
        };
        self.login(limit, probe).await
    }
}
