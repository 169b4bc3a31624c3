//! Scenarios that several experiments play, each with the locks they pass.

mod arrivals;
mod crash;
mod cut_off;
mod dead_waiter;
mod ending;
mod expired_sale;
mod first_holder;
mod late_holder;
mod late_writer;
mod line;
mod long_work;
mod minority_holder;
mod requests;
mod revoked_waiter;
pub(crate) mod script;
mod stranger;
#[cfg(all(feature = "redis", any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
mod three_ways;
mod two_clients;

use std::time::Duration;

use crate::Stage;
#[cfg(feature = "zookeeper")]
mod znodes;

#[cfg(all(
    feature = "redis",
    any(feature = "mysql", feature = "postgres", feature = "sqlite")
))]
pub(crate) use self::three_ways::three_ways;
#[cfg(feature = "zookeeper")]
pub(crate) use self::znodes::znodes;
pub(crate) use self::{
    arrivals::{Line, Queued, line},
    crash::crash,
    cut_off::{Cut, CutOff, cut_off},
    dead_waiter::{Looker, dead_waiter},
    ending::{Ended, Ending, ending},
    expired_sale::{Sale, expired_sale},
    first_holder::{FirstHolder, Meeting, Second},
    late_holder::late_holder,
    late_writer::{Stock, late_writer},
    line::{has, joined, until_line, until_line_within},
    long_work::{LongWork, long_work},
    minority_holder::MinorityHolder,
    requests::{counters, counting, lasting, requests, until_idle},
    revoked_waiter::{Belief, RevokedWaiter, Waiter, revoked_waiter},
    stranger::{Intrusion, Stranger, stranger},
    two_clients::two_clients,
};

/// The TTL for experiments that wait for its end.
pub(crate) fn short_ttl(stage: &Stage) -> Duration {
    stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(3))
}
