//! The same locks for programs without async: the same names, the same guarantees.
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
//! A connection has a runtime of its own with one thread, which renews what is held; by
//! [`Locks::open_in`] it has one of the caller's, such as one with a paused clock for tests. All of it may be
//! used from any thread, but not from inside an async runtime: a thread that must not block would
//! block there, and perhaps wait for itself. That is [`Error::Unsupported`], never a dead lock.
//!
//! What cannot be the same: no thread can be stopped. So work under a lock looks at
//! [`LockGuard::is_valid`] by itself, and there is no `run`, `keep_running` or `close_on_signal`. What is
//! waited for without end elsewhere takes a limit: [`LockGuard::lost_within`], [`Observer::next_within`].

mod election;
mod guard;
mod lock;
mod locks;
mod runtime;
mod semaphore;
mod set;

pub use self::{
    election::{Election, Observer},
    guard::{Leadership, LockGuard, LockSetGuard},
    lock::Lock,
    locks::Locks,
    semaphore::Semaphore,
    set::LockSet,
};

#[allow(unused_imports, reason = "for the documentation")]
use crate::Error;
