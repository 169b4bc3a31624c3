//! What operators ask and do: queues, names, revocation, the token floor.

use uuid::Uuid;

use crate::{Entry, FencingToken, LockName, Locks, Result, TokenFloor, api::raise_floor};

#[allow(unused_imports, reason = "for the documentation")]
use crate::{Error, Guarantees};

impl Locks {
    /// Who holds the lock and who waits for it, the holders first; empty if it is free.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and what the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the answer.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Vec<Entry>> {
        let (driver, name) = (self.client.driver.clone(), LockName::new(name)?);
        let queue = self.client.home.clone().ask(async move { driver.inspect(&name).await });
        queue.await.map_err(|error| self.client.told("inspect", error))
    }

    /// The names that somebody holds or waits for and that start with `prefix` (all of them if it
    /// is empty), in order. What comes and goes meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// What the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the answer.
    pub async fn names(&self, prefix: impl AsRef<str>) -> Result<Vec<LockName>> {
        let (driver, prefix) = (self.client.driver.clone(), prefix.as_ref().to_owned());
        let names = self.client.home.clone().ask(async move { driver.names(&prefix).await });
        names.await.map_err(|error| self.client.told("names", error))
    }

    /// For operators: takes a lock away from a holder, or a place from a waiter, of whatever
    /// process. The `attempt` is the one that [`inspect`](Self::inspect) shows. The victim's guard
    /// is lost with [`LossReason::EntryGone`](crate::LossReason::EntryGone), as soon as the store's
    /// [`LossSignal`](crate::LossSignal) comes to it, and the next in line is served: this may
    /// overlap with the victim's work, which only the fencing token stops. Answers whether there
    /// was such an entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and what the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub async fn revoke(&self, name: impl AsRef<str>, attempt: Uuid) -> Result<bool> {
        let (driver, name) = (self.client.driver.clone(), LockName::new(name)?);
        let revoked = async move { driver.revoke(&name, attempt).await };
        let revoked = self.client.home.clone().ask(revoked).await;
        revoked.map_err(|error| self.client.told("revoke", error))
    }

    /// How far the store's fencing tokens have come: what they are above, and up to which number
    /// they were handed out.
    ///
    /// # Errors
    ///
    /// What the store answers; [`Error::Unsupported`] if it keeps no such record.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the answer.
    pub async fn token_floor(&self) -> Result<TokenFloor> {
        let driver = self.client.driver.clone();
        let floor = self.client.home.clone().ask(async move { driver.token_floor().await });
        floor.await.map_err(|error| self.client.told("token floor", error))
    }

    /// For operators: makes every later token of every name greater than `above`, of all clients,
    /// whenever they connected. To be called when a store takes the place of another one, with the
    /// [newest](TokenFloor::newest) token of that one, and when a store was restored from a backup or
    /// made anew, with the greatest token that the resources have seen: else these refuse its holders.
    /// Only upwards; a floor that is as high stays.
    ///
    /// It ends what was there before: holders whose token is not above the floor are
    /// [revoked](Self::revoke), and so are waiters whose token would not be. Their next acquire is
    /// above it. When this returns, nobody holds or is granted a lock with a token at or below
    /// `above`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] above [`Guarantees::greatest_floor`], [`Error::Unsupported`], and what
    /// the store answers. Where it lets some be revoked and others not, all others are ended before that
    /// is told. [`Error::Unavailable`] if there is still somebody below the floor 30 s after each was
    /// ended once. After a failure call it again: the floor may be raised, and not everybody below it
    /// ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave some that were there before; calling it again ends them.
    pub async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let driver = self.client.driver.clone();
        let raise = async move { raise_floor::raise(&*driver, above).await };
        let raised = self.client.home.clone().ask(raise).await;
        raised.map_err(|error| self.client.told("raise the token floor", error))
    }
}
