//! The guards of locks, sets and leaderships.

use std::{ops::Deref, time::Duration};

use tokio::time::timeout;

use super::runtime::On;
use crate::{Held, HeldSet, LockName, LossReason, Mark, Result, Ticket};

/// Only methods that consume a guard take it out.
const NOT_RELEASED: &str = "a guard that is not released";

macro_rules! guard {
    ($(#[$doc:meta])* $guard:ident: $held:ident, lost by $loss:ty, ended by $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "dropping it gives it back"]
        // `None` once it is being released.
        pub struct $guard(pub(super) On<Option<crate::$guard>>);

        impl $guard {
            /// A view of it that can be passed on, also to async code; it does not hold anything.
            pub fn held(&self) -> $held {
                (**self).clone()
            }

            /// Waits for a loss, for at most `limit`; `None` if there was none.
            pub fn lost_within(&self, limit: Duration) -> Result<Option<$loss>> {
                let lost = self.lost();
                let lost = async move { Ok(timeout(limit, lost).await.ok()) };
                self.0.connected.wait("wait for a loss", lost)
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
                match self.0.it.take() {
                    Some(guard) => self.0.connected.wait(stringify!($release), guard.$release()),
                    None => Ok(()),
                }
            }
        }

        impl Deref for $guard {
            type Target = $held;

            fn deref(&self) -> &$held {
                self.0.it.as_deref().expect(NOT_RELEASED)
            }
        }

        impl Drop for $guard {
            fn drop(&mut self) {
                if let Some(guard) = self.0.it.take() {
                    self.0.connected.finish(guard.$release());
                }
            }
        }
    };
}

guard! {
    /// A lock that is held, like [`crate::LockGuard`]. Derefs to [`Held`].
    ///
    /// Dropping it releases the lock and waits for the store, for at most 1 s; inside an async
    /// runtime it does not wait.
    LockGuard: Held, lost by LossReason, ended by release
}

guard! {
    /// Several locks that are held together, like [`crate::LockSetGuard`]. Derefs to [`HeldSet`].
    ///
    /// Dropping it releases the locks and waits for the store, for at most 1 s; inside an async
    /// runtime it does not wait.
    LockSetGuard: HeldSet, lost by (LockName, LossReason), ended by release
}

guard! {
    /// The leadership of an election, like [`crate::Leadership`]. Derefs to [`Held`].
    ///
    /// Dropping it resigns and waits for the store, for at most 1 s; inside an async runtime it
    /// does not wait.
    Leadership: Held, lost by LossReason, ended by resign
}

impl LockGuard {
    /// Like [`Held::renew`].
    pub fn renew(&self) -> Result<()> {
        self.0.connected.wait("renew", (**self).renew())
    }

    /// Like [`crate::LockGuard::mark`].
    pub fn mark(&self) -> Result<Option<Mark>> {
        let On { connected, it } = &self.0;
        connected.wait("mark", it.as_ref().expect(NOT_RELEASED).mark())
    }

    /// Like [`crate::LockGuard::mark_done`].
    pub fn mark_done(&self, period: Duration) -> Result<()> {
        let On { connected, it } = &self.0;
        connected.wait("mark as done", it.as_ref().expect(NOT_RELEASED).mark_done(period))
    }

    /// Like [`crate::LockGuard::downgrade`].
    pub fn downgrade(&mut self) -> Result<()> {
        let On { connected, it } = &mut self.0;
        connected.wait("downgrade", it.as_mut().expect(NOT_RELEASED).downgrade())
    }

    /// Leaves the lock to another process, like [`crate::LockGuard::detach`].
    ///
    /// # Errors
    ///
    /// Same as [`crate::LockGuard::detach`], and [`Error::Unsupported`](crate::Error::Unsupported)
    /// inside an async runtime; it is then given back in the background.
    pub fn detach(mut self) -> Result<Ticket> {
        let guard = self.0.it.take().expect(NOT_RELEASED);
        self.0.connected.wait("detach", guard.detach())
    }

    /// Like [`crate::LockGuard::try_upgrade`].
    pub fn try_upgrade(&mut self) -> Result<bool> {
        let On { connected, it } = &mut self.0;
        connected.wait("upgrade", it.as_mut().expect(NOT_RELEASED).try_upgrade())
    }
}

impl Leadership {
    /// Like [`Held::renew`].
    pub fn renew(&self) -> Result<()> {
        self.0.connected.wait("renew", (**self).renew())
    }

    /// Publishes a new value to all observers, like [`crate::Leadership::proclaim`].
    pub fn proclaim(&mut self, value: impl AsRef<[u8]>) -> Result<()> {
        let On { connected, it } = &mut self.0;
        connected.wait("proclaim", it.as_mut().expect(NOT_RELEASED).proclaim(value))
    }
}
