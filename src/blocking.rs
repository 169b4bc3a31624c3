//! The same locks for programs without async, elections and owners among them: the same names, the same
//! guarantees. `lost` and `next` of an observer take a limit here: [`LockGuard::lost_within`],
//! [`Observer::next_within`]. Missing is what stops work from outside: `run`, `try_run`, `keep_running` and
//! `close_on_signal`. No thread can be stopped, so work under a lock looks at [`LockGuard::is_valid`]
//! by itself. And there is no stream `connections`: [`Locks::connection`] tells the state.
//!
//! ```
//! let locks = distlock::blocking::connect("memory:")?; // or etcd://.., redis://.., zookeeper://..
//! let guard = locks.lock("orders/42")?.acquire()?;
//! println!("fencing token {}", guard.token());
//! guard.release()?;
//! # Ok::<(), distlock::Error>(())
//! ```
//!
//! A connection has a runtime of its own with one thread, which renews what is held; by
//! [`Locks::open_in`] it has one of the caller's, such as one with a paused clock for tests
//! (`docs/testing.md` in the repository). Its functions may be called from any thread, but not from inside
//! an async runtime: a thread that must not block would block there, and perhaps wait for itself. That is
//! [`Error::Unsupported`](crate::Error::Unsupported), never a dead lock.

pub use lock_core::blocking::{
    Election, Leadership, Lock, LockGuard, LockSet, LockSetGuard, Locks, Observer, Semaphore,
};

use crate::Result;

/// Connects to the store of a URL. With requirements:
/// `Locks::open(distlock::connect(url).require(..))`.
///
/// # Errors
///
/// As [`connect`](crate::connect()), and [`Error::Unsupported`](crate::Error::Unsupported) inside an
/// async runtime.
#[track_caller]
pub fn connect(url: impl AsRef<str>) -> Result<Locks> {
    Locks::open(crate::connect(url))
}
