//! Several locks at once.

mod acquire;
mod attempt;
pub(crate) mod guard;
pub(crate) mod held;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    Error, Kind, Lock, LockKind, LockName, Result,
    api::{client::Client, options::options},
};

/// Several locks that are acquired together: all or nothing. Exclusive ones, unless
/// [`shared`](Self::shared) or [`and_shared`](Self::and_shared) says otherwise. Cheap to clone.
///
/// If all are free, and the store can, one request takes all of them
/// ([`Guarantees::names_at_once`](crate::Guarantees::names_at_once)). Otherwise they are taken one
/// after the other in the order of their names, so overlapping sets do not deadlock. The order in
/// which the names are given has no effect. A name that is given twice counts once.
///
/// ```no_run
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let accounts = locks.all(["accounts/7", "accounts/3"])?.acquire().await?;
/// for (name, token) in accounts.tokens() {
///     println!("{name}: {token}");
/// }
/// accounts.release().await
/// # }
/// ```
///
/// # Cancel safety
///
/// Same as the calls of [`Lock`] with these names, which also say when they panic.
#[derive(Clone, Debug)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet {
    pub(crate) lock: Lock,
    /// In the order of their names, and never empty.
    members: BTreeMap<LockName, Kind>,
    /// Whether a set of one name is taken like a larger set, which costs more: for the properties.
    alone_too: bool,
}

impl LockSet {
    pub(crate) fn new(
        client: Arc<Client>,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self> {
        let exclusive = |name| Ok((LockName::new(name)?, Kind::Exclusive));
        let members = names.into_iter().map(exclusive).collect::<Result<BTreeMap<_, _>>>()?;
        let Some(first) = members.keys().next().cloned() else {
            let reason = "a set needs at least one name".to_owned();
            return Err(Error::InvalidName { name: String::new(), reason });
        };
        Ok(Self { lock: Lock::new(client, first, Kind::Exclusive)?, members, alone_too: false })
    }

    /// The same names as shared locks: held together with other shared holders, never with an
    /// exclusive one.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let prices = locks.all(["prices/eur", "prices/usd"])?.shared()?.acquire().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no shared locks.
    pub fn shared(mut self) -> Result<Self> {
        self.lock.client.driver.guarantees().check_kind(LockKind::Shared)?;
        self.members.values_mut().for_each(|kind| *kind = Kind::Shared);
        Ok(self)
    }

    /// Adds names as shared locks. A name that is in the set already keeps its kind.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let set = locks.all(["accounts/7", "accounts/3"])?.and_shared(["rates"])?;
    /// set.acquire().await?.release().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no shared locks, [`Error::InvalidName`] for a bad
    /// name.
    pub fn and_shared(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        self.lock.client.driver.guarantees().check_kind(LockKind::Shared)?;
        for name in names {
            self.members.entry(LockName::new(name)?).or_insert(Kind::Shared);
        }
        Ok(self)
    }

    /// Takes a single name like a larger set.
    #[cfg(feature = "properties")]
    pub(crate) fn alone_too(self) -> Self {
        Self { alone_too: true, ..self }
    }

    options!(|self| self.lock);

    fn busy(&self) -> Error {
        Error::Contended { name: self.lock.request.name.clone() }
    }

    /// Its locks, in the order of their names.
    fn each(&self) -> impl Iterator<Item = Lock> {
        self.members.iter().map(|(name, kind)| {
            let mut lock = self.lock.clone();
            (lock.request.name, lock.request.kind) = (name.clone(), *kind);
            // A part of a set is given back at once if the whole set cannot be acquired.
            lock.at_least = Duration::ZERO;
            // An outage has taken the other parts, too.
            lock.through_outages = false;
            lock
        })
    }
}
