//! Calls for operators: queues, names, revocation, the token floor.

use uuid::Uuid;

use crate::{
    BoxFuture, Entry, FencingToken, LockName, Locks, Result, TokenFloor, api::raise_floor,
};

#[allow(unused_imports, reason = "for the documentation")]
use crate::{Error, Guarantees};

impl Locks {
    /// Returns the holders of the lock, then its waiters; empty if it is free.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and the store's errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn inspect(&self, name: impl AsRef<str>) -> BoxFuture<'_, Result<Vec<Entry>>> {
        self.queue_of(LockName::new(name))
    }

    fn queue_of(&self, name: Result<LockName>) -> BoxFuture<'_, Result<Vec<Entry>>> {
        Box::pin(async move {
            let (driver, name) = (self.client.driver.clone(), name?);
            let asked = name.clone();
            let queue = self.client.home.clone().ask(async move { driver.inspect(&asked).await });
            queue.await.map_err(|error| self.client.failed("inspect", error).about(&name))
        })
    }

    /// Returns the names that have a holder or a waiter and that start with `prefix`, in order; all
    /// names if `prefix` is empty. A name that comes or goes meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// The store's errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn names(&self, prefix: impl AsRef<str>) -> BoxFuture<'_, Result<Vec<LockName>>> {
        self.names_from(prefix.as_ref().to_owned())
    }

    fn names_from(&self, prefix: String) -> BoxFuture<'_, Result<Vec<LockName>>> {
        Box::pin(async move {
            let driver = self.client.driver.clone();
            let names = self.client.home.clone().ask(async move { driver.names(&prefix).await });
            names.await.map_err(|error| self.client.failed("names", error))
        })
    }

    /// For operators: takes a lock away from a holder, or a place from a waiter, in any process.
    /// `attempt` is the id that [`inspect`](Self::inspect) shows. The victim's guard is lost with
    /// [`LossReason::EntryGone`](crate::LossReason::EntryGone), as soon as the store's
    /// [`LossSignal`](crate::LossSignal) reaches it. The next in line is served. It may overlap
    /// with the victim's work; only the fencing token stops that. Returns whether there was such an
    /// entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and the store's errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub fn revoke(&self, name: impl AsRef<str>, attempt: Uuid) -> BoxFuture<'_, Result<bool>> {
        self.revoke_in(LockName::new(name), attempt)
    }

    fn revoke_in(&self, name: Result<LockName>, attempt: Uuid) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let (driver, name) = (self.client.driver.clone(), name?);
            let asked = name.clone();
            let revoked = async move { driver.revoke(&asked, attempt).await };
            let revoked = self.client.home.clone().ask(revoked).await;
            revoked.map_err(|error| self.client.failed("revoke", error).about(&name))
        })
    }

    /// Returns the floor that the store's tokens are above, and a limit that none of them exceeds
    /// so far.
    ///
    /// # Errors
    ///
    /// The store's errors; [`Error::Unsupported`] if it keeps no such record.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn token_floor(&self) -> BoxFuture<'_, Result<TokenFloor>> {
        Box::pin(async move {
            let driver = self.client.driver.clone();
            let floor = self.client.home.clone().ask(async move { driver.token_floor().await });
            floor.await.map_err(|error| self.client.failed("token floor", error))
        })
    }

    /// For operators: makes every later token of every name greater than `above`, for all clients,
    /// whenever they connected. Call it when a store replaces another one, with the
    /// [newest](TokenFloor::newest) token of the old store. Call it when a store was restored from
    /// a backup or made anew, with the greatest token that the resources have seen: otherwise the
    /// resources refuse its holders. The floor only rises; a floor that is as high stays.
    ///
    /// It ends older holds and waits: holders whose token is not above the floor are
    /// [revoked](Self::revoke), and so are waiters whose token would not be. Their next acquire is
    /// above it. When this returns, no lock is held or granted with a token at or below `above`. A
    /// client that is cut off does not know of it yet: its holders work until their deadlines, as
    /// after a revoke, and on some stores it may pass a lock on to its own waiters until then.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] above half of [`Guarantees::greatest_token`],
    /// [`Error::Unsupported`], and the store's errors. If the store refuses to revoke some attempts,
    /// all others are ended before that error is returned. [`Error::Unavailable`] if an attempt is
    /// still below the floor 30 s after each was ended once. After a failure call it again: the
    /// floor may be raised, and some attempts below it may not be ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave some older attempts; calling it again ends them.
    pub fn raise_token_floor(&self, above: FencingToken) -> BoxFuture<'_, Result<TokenFloor>> {
        Box::pin(async move {
            let driver = self.client.driver.clone();
            let raise = async move { raise_floor::raise(&*driver, above).await };
            let raised = self.client.home.clone().ask(raise).await;
            raised.map_err(|error| self.client.failed("raise the token floor", error))
        })
    }
}
