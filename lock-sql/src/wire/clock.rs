//! The clock of all deadlines.

use lock_core::Clock;

pub(crate) const CLOCK: Clock = Clock::Boot;
