//! How often tests repeat what they repeat.

use std::env;

/// Whether the environment has `DISTLOCK_LONG`: what only repeats itself, or plays the same in
/// another way, does so more often then.
pub fn in_a_long_run() -> bool {
    env::var_os("DISTLOCK_LONG").is_some()
}

/// The size of a test that only repeats itself: the usual one, or the one of a
/// [long run](in_a_long_run).
pub fn size<T>(usual: T, long: T) -> T {
    if in_a_long_run() { long } else { usual }
}
