//! A resource behind a lock.

use lock_core::Lease;

/// A resource that rejects a token lower than one it has seen.
#[derive(Default)]
pub struct Fenced(u64);

impl Fenced {
    /// Writes under a lease. Returns whether the resource accepts it.
    pub fn write(&mut self, lease: &dyn Lease) -> bool {
        let token = lease.token().value();
        let accepted = token >= self.0;
        self.0 = self.0.max(token);
        accepted
    }
}
