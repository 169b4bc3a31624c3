//! The guards of locks, sets and leaderships.

use std::{sync::Arc, time::Duration};

use super::runtime::Connected;
use crate::{Facts, FencingToken, Held, HeldSet, Kind, LockName, LossReason, Result, Ticket};

macro_rules! guard {
    ($(#[$doc:meta])* $guard:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "dropping it gives it back"]
        pub struct $guard {
            connected: Arc<Connected>,
            /// `None` once it is being released.
            guard: Option<crate::$guard>,
        }

        impl $guard {
            pub(super) fn new(connected: &Arc<Connected>, guard: crate::$guard) -> Self {
                Self { connected: connected.clone(), guard: Some(guard) }
            }

            /// Whether it is still held, as this process computes it; right as the first call after
            /// a pause. Check it before each write.
            pub fn is_valid(&self) -> bool {
                self.guard.as_ref().is_some_and(|guard| guard.is_valid())
            }

            /// How long it is still held without another renewal; zero if it is not held.
            pub fn remaining(&self) -> Duration {
                self.guard.as_ref().map_or(Duration::ZERO, |guard| guard.remaining())
            }

            /// Gives it back, and waits until the store has confirmed.
            ///
            /// # Errors
            ///
            /// [`Error::Lost`](crate::Error::Lost) if it was lost before,
            /// [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm, and
            /// [`Error::Unsupported`](crate::Error::Unsupported) inside an async runtime; it is
            /// then given back in the background.
            pub fn $release(mut self) -> Result<()> {
                match self.guard.take() {
                    Some(guard) => self.connected.wait(stringify!($release), guard.$release()),
                    None => Ok(()),
                }
            }
        }

        impl Drop for $guard {
            fn drop(&mut self) {
                if let Some(guard) = self.guard.take() {
                    self.connected.finish(guard.$release());
                }
            }
        }
    };
}

guard! {
    /// A lock that is held, like [`crate::LockGuard`].
    ///
    /// Dropping it releases the lock and waits for the store, for at most 1 s; inside an async
    /// runtime it does not wait.
    LockGuard, release
}

guard! {
    /// Several locks that are held together, like [`crate::LockSetGuard`].
    ///
    /// Dropping it releases the locks and waits for the store, for at most 1 s; inside an async
    /// runtime it does not wait.
    LockSetGuard, release
}

guard! {
    /// The leadership of an election, like [`crate::Leadership`].
    ///
    /// Dropping it resigns and waits for the store, for at most 1 s; inside an async runtime it
    /// does not wait.
    Leadership, resign
}

/// Methods of the guards of one grant.
macro_rules! held {
    ($($guard:ident),+) => {$(
        impl $guard {
            fn inner(&self) -> &crate::$guard {
                // Only methods that consume the guard take it out.
                self.guard.as_ref().expect("a guard that is not released")
            }

            /// Its name.
            pub fn name(&self) -> &LockName {
                self.inner().name()
            }

            /// A view of it that can be passed on, also to async code; it does not hold the lock.
            pub fn held(&self) -> Held {
                self.inner().held()
            }

            /// The fencing token of this grant.
            pub fn token(&self) -> FencingToken {
                self.inner().token()
            }

            /// Waits until it is lost, for at most `limit`; `None` if it was not.
            pub fn lost_within(&self, limit: Duration) -> Result<Option<LossReason>> {
                let lost = self.inner().lost();
                let lost = async move { Ok(tokio::time::timeout(limit, lost).await.ok()) };
                self.connected.wait("wait for a loss", lost)
            }

            /// Whether the store does not confirm renewals any more, like
            /// [`Held::is_at_risk`](crate::Held::is_at_risk).
            pub fn is_at_risk(&self) -> bool {
                self.inner().is_at_risk()
            }

            /// The facts that the store reported with the grant, like
            /// [`Held::facts`](crate::Held::facts).
            pub fn facts(&self) -> Facts {
                self.inner().facts()
            }

            /// The driver's own lease, for guarded writes, like
            /// [`Held::lease_as`](crate::Held::lease_as).
            pub fn lease_as<L: crate::Lease>(&self) -> Option<&L> {
                self.inner().lease_as()
            }

            /// Like [`Held::renew`](crate::Held::renew).
            pub fn renew(&self) -> Result<()> {
                self.connected.wait("renew", self.inner().renew())
            }
        }
    )+};
}

held!(LockGuard, Leadership);

impl LockGuard {
    /// The kind of the hold: exclusive, shared, or permits.
    pub fn kind(&self) -> Kind {
        self.inner().kind()
    }

    /// Like [`crate::LockGuard::downgrade`].
    pub fn downgrade(&mut self) -> Result<()> {
        match &mut self.guard {
            Some(guard) => self.connected.wait("downgrade", guard.downgrade()),
            None => Ok(()),
        }
    }

    /// Leaves the lock to another process, like [`crate::LockGuard::detach`].
    ///
    /// # Errors
    ///
    /// Same as [`crate::LockGuard::detach`], and [`Error::Unsupported`](crate::Error::Unsupported)
    /// inside an async runtime; it is then given back in the background.
    pub fn detach(mut self) -> Result<Ticket> {
        // Only methods that consume the guard take it out.
        let guard = self.guard.take().expect("a guard that is not released");
        self.connected.wait("detach", guard.detach())
    }

    /// Like [`crate::LockGuard::try_upgrade`].
    pub fn try_upgrade(&mut self) -> Result<bool> {
        match &mut self.guard {
            Some(guard) => self.connected.wait("upgrade", guard.try_upgrade()),
            None => Ok(false),
        }
    }
}

impl LockSetGuard {
    /// Each name with its fencing token, in the order of the names.
    pub fn tokens(&self) -> impl Iterator<Item = (&LockName, FencingToken)> {
        self.guard.iter().flat_map(|guard| guard.tokens())
    }

    /// One of the locks; `None` if the name is not in the set.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&Held> {
        self.guard.as_ref()?.get(name)
    }

    /// A view of the locks that can be passed on, also to async code; it does not hold them.
    pub fn held(&self) -> HeldSet {
        // Only methods that consume the guard take it out.
        self.guard.as_ref().expect("a guard that is not released").held()
    }
}

impl LockSetGuard {
    /// Waits until one of the locks is lost, for at most `limit`, and returns its name and the
    /// reason; `None` if none was lost.
    pub fn lost_within(&self, limit: Duration) -> Result<Option<(LockName, LossReason)>> {
        let Some(guard) = &self.guard else { return Ok(None) };
        let lost = guard.lost();
        let lost = async move { Ok(tokio::time::timeout(limit, lost).await.ok()) };
        self.connected.wait("wait for a loss", lost)
    }
}

impl Leadership {
    /// Publishes a new value to all observers, like [`crate::Leadership::proclaim`].
    pub fn proclaim(&mut self, value: impl AsRef<[u8]>) -> Result<()> {
        match &mut self.guard {
            Some(leading) => self.connected.wait("proclaim", leading.proclaim(value)),
            None => Ok(()),
        }
    }
}
