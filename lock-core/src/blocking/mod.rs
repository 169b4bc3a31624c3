//! The same locks for programs without async, with the same names and the same guarantees.
//!
//! ```
//! # mod distlock { pub use lock_core::*; pub fn connect(_: &str) -> Connect { unreachable!() } }
//! # fn example() -> distlock::Result<()> {
//! use distlock::blocking::Locks;
//!
//! let locks = Locks::open(distlock::connect("memory:"))?;
//! let guard = locks.lock("orders/42")?.acquire()?;
//! println!("fencing token {}", guard.token());
//! guard.release()
//! # }
//! ```
//!
//! A connection has its own runtime with one thread, which renews the held locks. With
//! [`Locks::open_in`] it uses the caller's runtime, such as one with a paused clock for tests.
//! Everything here may be used from any thread, but not inside an async runtime: a thread that must
//! not block would block there, and perhaps wait for itself. That is [`Error::Unsupported`], never
//! a deadlock. Otherwise a call has the errors of the async one of its name.
//!
//! One difference: no thread can be stopped. So work under a lock must check
//! [`Held::is_valid`], and there is no `run`, `keep_running` or `close_on_signal`.
//! [`Locks::drain_on_signal`] ends a program in order. Waits that have no end elsewhere take a
//! limit: [`LockGuard::lost_within`], [`Observer::next_within`]. A guard derefs to [`Held`] or
//! [`HeldSet`], like the async one; the waits there are for async code.

mod election;
mod guard;
mod lock;
mod locks;
mod runtime;
mod semaphore;
mod set;
#[cfg(feature = "signal")]
mod signal;

pub use self::{
    election::{Election, Observer},
    guard::{Leadership, LockGuard, LockSetGuard},
    lock::Lock,
    locks::Locks,
    semaphore::Semaphore,
    set::LockSet,
};

#[allow(unused_imports, reason = "for the documentation")]
use crate::{Error, Held, HeldSet};
