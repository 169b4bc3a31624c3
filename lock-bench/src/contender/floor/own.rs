//! What a worker of a floor has of its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// As long as a holder's description of itself.
pub(super) const NOTE: &str = r#"{"holder":"bench-0123456789abcdef pid 12345 on a-host","since":1700000000000,"attempt":"00000000-0000-0000-0000-000000000000"}"#;

/// Returns a name that no other worker of any process on this machine has.
pub(super) fn name(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Relaxed))
}
