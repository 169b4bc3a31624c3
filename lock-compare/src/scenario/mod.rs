//! What several experiments play, with whatever lock they are given.

mod cut_off;
mod ending;
mod first_holder;
mod late_holder;
mod line;
mod long_work;
mod minority_holder;
mod revoked_waiter;
mod stranger;

use std::time::Duration;

use crate::Stage;

pub(crate) use self::{
    cut_off::{Cut, CutOff, cut_off},
    ending::{Ended, Ending, ending},
    first_holder::{FirstHolder, Meeting, Second},
    late_holder::late_holder,
    line::{has, joined, until_line, until_line_within},
    long_work::{LongWork, long_work},
    minority_holder::MinorityHolder,
    revoked_waiter::{Belief, RevokedWaiter, Waiter, revoked_waiter},
    stranger::{Intrusion, Stranger, stranger},
};

/// The TTL of experiments that wait for its end.
pub(crate) fn short_ttl(stage: &Stage) -> Duration {
    stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(3))
}
