//! Times and counts that are the same on every store.

use std::{ops::RangeInclusive, time::Duration};

/// The TTL of locks that set none: 15 s.
pub const DEFAULT_TTL: Duration = Duration::from_secs(15);

/// The longest TTL of a store without a limit of its own: a day.
pub const LONGEST_TTL: Duration = Duration::from_secs(24 * 3600);

/// The periods for which work can be marked as done: from the unit of the stores' times to ten
/// years, which each clock can add to its time.
pub const PERIODS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3660 * 24 * 3600);

/// How long a try is repeated during an outage: 4 s. lock-core gives up after 5 s.
pub const TRY: Duration = Duration::from_secs(4);

/// How long `close` is repeated: 4 s. lock-core gives up after 5 s.
pub const CLOSE: Duration = Duration::from_secs(4);

/// How many changes of the leader may wait for an observer that does not read them: 64.
pub const UNREAD: usize = 64;
