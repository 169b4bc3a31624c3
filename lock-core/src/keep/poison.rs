//! Mutexes that cannot be poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex with critical sections that never panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
