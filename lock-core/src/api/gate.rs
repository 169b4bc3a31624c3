//! A resource's own check of fencing tokens.

use std::sync::{Mutex, PoisonError};

use crate::{FencingToken, keep::poison::lock};

/// A value that lets in only holders with the newest token.
///
/// The check and the access are one step under one mutex: a check alone would leave a gap in which
/// a newer holder may write first. The same check works in a database or a service.
///
/// ```
/// # use lock_core as distlock;
/// use distlock::{FencingToken, Gate};
///
/// let stock = Gate::new(10);
/// let (old, new) = (FencingToken::new(33), FencingToken::new(34));
///
/// assert_eq!(stock.enter(new, |left| { *left -= 1; *left }), Ok(9));
/// // The holder of token 33 was paused past its TTL and writes late.
/// let late = stock.enter(old, |left| *left -= 1).unwrap_err();
/// assert_eq!((late.token, late.newest), (old, new));
/// assert_eq!((stock.newest(), stock.read(|left| *left)), (Some(new), 9));
/// ```
#[derive(Debug, Default)]
pub struct Gate<T> {
    inner: Mutex<(Option<FencingToken>, T)>,
}

/// A write came with a lower token than the resource has already seen. Usually the writer is late:
/// a later holder was here. But after a swap of the store, or a restore of an older state, tokens
/// begin below what the resource has seen, and it refuses every holder.
///
/// [`Held::renew`](crate::Held::renew) of an exclusive lock tells which: while it is `Ok`, the
/// store knows no later holder. Of a lock that several hold it tells nothing, as each has another
/// token.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "token {token} is stale: {newest} was seen before. A later holder was here; or, if renew() of \
     an exclusive lock is Ok, the store was swapped or restored, and its tokens begin below"
)]
#[non_exhaustive]
pub struct StaleToken {
    /// The token of the rejected write.
    pub token: FencingToken,
    /// The greatest token seen so far.
    pub newest: FencingToken,
}

impl<T> Gate<T> {
    /// A gate that has seen no token yet.
    pub const fn new(value: T) -> Self {
        Self { inner: Mutex::new((None, value)) }
    }

    /// Runs `access` on the value if no greater token was seen before, and remembers the token.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] if a greater token was seen; `access` did not run.
    pub fn enter<R>(
        &self,
        token: FencingToken,
        access: impl FnOnce(&mut T) -> R,
    ) -> Result<R, StaleToken> {
        // A panic in an earlier `access` concerns its caller only; the token stays right.
        let mut inner = lock(&self.inner);
        match inner.0 {
            Some(newest) if token < newest => Err(StaleToken { token, newest }),
            _ => {
                inner.0 = Some(token);
                Ok(access(&mut inner.1))
            }
        }
    }

    /// Reads the value, which needs no token.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&lock(&self.inner).1)
    }

    /// The greatest token seen so far; `None` before the first.
    pub fn newest(&self) -> Option<FencingToken> {
        lock(&self.inner).0
    }

    /// The value, without the gate.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}
