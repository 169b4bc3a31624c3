//! The type of futures that are compiled once.

use std::{future::Future, pin::Pin};

/// A future on the heap that can move between threads. It does nothing until it is polled.
///
/// Most calls return this, such as a connect and [`close`](crate::Locks::close). An `async fn` is
/// compiled anew in each crate that awaits it, with all that it awaits itself; a function that
/// returns this is compiled once, in its own crate. It costs one allocation for each call, so the
/// [`acquire`](crate::Lock::acquire), [`renew`](crate::Held::renew) and
/// [`release`](crate::LockGuard::release) of a single lock do not return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
