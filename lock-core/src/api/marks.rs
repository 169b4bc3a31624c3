//! Marks of work that is done, for operators and for programs that look for themselves.

use crate::{BoxFuture, LockName, Locks, Mark, Result};

#[allow(unused_imports, reason = "for the documentation")]
use crate::{Error, Lock};

impl Locks {
    /// Returns the mark of a lock whose work counts as done, see [`Lock::once_per`]; `None` if
    /// there is none or its period is over. That there is none counts only for a caller that holds
    /// the lock: otherwise a run may be about to write it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], [`Error::Unsupported`] if the store keeps no marks, and the store's
    /// errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn mark(&self, name: impl AsRef<str>) -> BoxFuture<'_, Result<Option<Mark>>> {
        self.mark_of(LockName::new(name))
    }

    fn mark_of(&self, name: Result<LockName>) -> BoxFuture<'_, Result<Option<Mark>>> {
        Box::pin(async move { self.client.mark(name?).await })
    }

    /// Returns the marks of the names that start with `prefix`, in the order of the names.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store keeps no marks, and the store's errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer and nothing else.
    pub fn marks(&self, prefix: impl AsRef<str>) -> BoxFuture<'_, Result<Vec<(LockName, Mark)>>> {
        self.marks_from(prefix.as_ref().to_owned())
    }

    fn marks_from(&self, prefix: String) -> BoxFuture<'_, Result<Vec<(LockName, Mark)>>> {
        Box::pin(async move {
            let driver = self.client.driver.clone();
            driver.guarantees().check_marks()?;
            let marks = self.client.home.clone().ask(async move { driver.marks(&prefix).await });
            marks.await.map_err(|error| self.client.failed("marks", error))
        })
    }

    /// For operators: removes a lock's mark, so that the next run does the work again. Returns
    /// whether there was one, or may have been, as an answer was lost. Nothing else removes it
    /// before its period is over; to [revoke](Self::revoke) a holder does not.
    ///
    /// # Errors
    ///
    /// Same as [`mark`](Self::mark).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub fn clear_mark(&self, name: impl AsRef<str>) -> BoxFuture<'_, Result<bool>> {
        self.clear_mark_of(LockName::new(name))
    }

    fn clear_mark_of(&self, name: Result<LockName>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let (driver, name) = (self.client.driver.clone(), name?);
            driver.guarantees().check_marks()?;
            let asked = name.clone();
            let cleared = async move { driver.clear_mark(&asked).await };
            let cleared = self.client.home.clone().ask(cleared).await;
            cleared.map_err(|error| self.client.failed("clear the mark", error).about(&name))
        })
    }
}
