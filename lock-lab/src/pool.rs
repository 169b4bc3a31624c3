//! Servers that tests use one after the other.

use std::{
    fmt::Display,
    ops::Deref,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::LabError;

/// Servers of one kind for the tests of a program. Starting one takes longer than most tests.
///
/// A test has its server for itself. The next one gets it empty.
///
/// ```no_run
/// use lock_lab::{LabError, Lent, Pool, Redis};
///
/// static POOL: Pool<Redis> = Pool::new();
///
/// async fn redis() -> Result<Lent<Redis>, LabError> {
///     let empty = async |redis: &Redis| redis.command(&[b"FLUSHALL"]).await.map(drop);
///     POOL.lend(empty, Redis::start).await
/// }
/// ```
#[derive(Debug)]
pub struct Pool<S>(Mutex<Vec<S>>);

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Pool<S> {
    /// A pool without servers.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<S> {
        self.idle().pop()
    }

    fn lent(&'static self, server: S) -> Lent<S> {
        Lent { server: Some(server), pool: Some(self), is_as_new: AtomicBool::new(true) }
    }

    /// Lends a server that no test uses, after `empty`, or else a new one.
    ///
    /// A dropped future may end a server. The next test gets another one.
    pub async fn lend<E: From<LabError> + Display>(
        &'static self,
        empty: impl AsyncFn(&S) -> Result<(), E>,
        start: impl AsyncFnOnce() -> Result<S, LabError>,
    ) -> Result<Lent<S>, E> {
        while let Some(server) = self.take() {
            match empty(&server).await {
                Ok(()) => return Ok(self.lent(server)),
                // A test has left it broken, which must not fail this one.
                Err(error) => eprintln!("a server of a pool ends, it is not empty: {error}"),
            }
        }
        Ok(self.lent(start().await?))
    }
}

/// A server of a [`Pool`]. It goes back on drop, unless the test panics.
#[derive(Debug)]
pub struct Lent<S: 'static> {
    /// `None` during the drop.
    server: Option<S>,
    /// `None` if it ends with the test.
    pool: Option<&'static Pool<S>>,
    is_as_new: AtomicBool,
}

impl<S> Lent<S> {
    /// Keeps the server from the tests after this one: emptied, it would not be as new.
    pub fn spoil(&self) {
        self.is_as_new.store(false, Relaxed);
    }
}

/// A server with settings of its own, which no other test gets.
impl<S> From<S> for Lent<S> {
    fn from(server: S) -> Self {
        Self { server: Some(server), pool: None, is_as_new: AtomicBool::new(true) }
    }
}

impl<S> Deref for Lent<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.server.as_ref().expect("it is there until it is dropped")
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        let is_as_new = self.is_as_new.load(Relaxed) && !std::thread::panicking();
        if let Some(pool) = self.pool.filter(|_| is_as_new) {
            pool.idle().extend(self.server.take());
        }
    }
}
