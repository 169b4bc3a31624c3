//! The type of futures that are compiled once.

use std::{future::Future, pin::Pin};

/// A future on the heap that can move between threads. It does nothing until it is polled.
///
/// Calls that are not made for each lock, such as a connect and [`close`](crate::Locks::close),
/// return this. An `async fn` is compiled anew in each crate that awaits it, with all that it
/// awaits itself; a function that returns this is compiled once, in its own crate. It costs one
/// allocation for each call, so [`acquire`](crate::Lock::acquire) and
/// [`release`](crate::LockGuard::release) do not return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
