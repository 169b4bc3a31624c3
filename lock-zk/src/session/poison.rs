//! Mutexes that cannot be poisoned.

pub(crate) use lock_core::keep::poison::lock;
