//! The same locks for programs without async, including elections and owners: same names, same
//! guarantees. `lost` and `next` of an observer take a limit here: [`LockGuard::lost_within`],
//! [`Observer::next_within`]. There is no `run`, `run_fallible`, `keep_running` or
//! `close_on_signal`: they stop work from outside, and a thread cannot be stopped. So work under a
//! lock checks [`Held::is_valid`](crate::Held::is_valid) itself. A guard derefs to
//! [`Held`](crate::Held), or to [`HeldSet`](crate::HeldSet), like the async one; the futures there
//! (`lost`, `at_risk`) are for async code. There is no stream `connections`: [`Locks::connection`]
//! returns the state.
//!
//! ```
//! let locks = distlock::blocking::connect("memory:")?; // or etcd://.., redis://.., zookeeper://..
//! let guard = locks.lock("orders/42")?.acquire()?;
//! println!("fencing token {}", guard.token());
//! guard.release()?;
//! # Ok::<(), distlock::Error>(())
//! ```
//!
//! A connection has its own runtime with one thread, which renews the held locks. With
//! [`Locks::open_in`] it uses the caller's runtime, for example one with a paused clock for tests
//! (`docs/testing.md` in the repository). Its functions may be called from any thread, but not from
//! inside an async runtime: a thread that must not block would block there, and might wait for
//! itself. Such a call returns [`Error::Unsupported`](crate::Error::Unsupported), it never
//! deadlocks. Otherwise a call has the errors of the async one of its name.

pub use lock_core::blocking::{
    Election, Leadership, Lock, LockGuard, LockSet, LockSetGuard, Locks, Observer, Semaphore,
};

use crate::Result;

/// Connects to the store of a URL. With requirements:
/// `Locks::open(distlock::connect(url).require(..))`.
///
/// # Errors
///
/// Same as [`connect`](crate::connect()), and [`Error::Unsupported`](crate::Error::Unsupported)
/// inside an async runtime.
#[track_caller]
pub fn connect(url: impl AsRef<str>) -> Result<Locks> {
    Locks::open(crate::connect(url))
}
