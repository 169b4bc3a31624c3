//! A request that is sent until the database answers, and its answer.

use std::time::Duration;

use lock_core::{Attempt, Effect, Instant};

use crate::{layout::row::Rows, wire::turns::Rank};

/// A request that may run twice, and how long it is sent again.
pub(crate) struct Call<'a> {
    /// Its name in errors.
    pub(crate) op: &'static str,
    pub(crate) rank: Rank,
    /// How long each sending waits for its answer.
    pub(crate) patience: Duration,
    /// Waits for a turn do not count.
    pub(crate) deadline: Instant,
    /// The attempt of a request that gives it an entry. When it is cancelled, nothing is sent any
    /// more, and when the client is closed: `close` removes what the attempt may have left.
    pub(crate) caller: Option<&'a Attempt>,
}

/// The answer to a call.
pub(crate) struct Reply {
    /// When the answered request was sent.
    pub(crate) sent: Instant,
    pub(crate) rows: Rows,
    /// Whether an earlier sending without an answer may have taken effect.
    pub(crate) earlier: Effect,
}
