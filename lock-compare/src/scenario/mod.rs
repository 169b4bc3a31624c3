//! Scenarios that several experiments play, each with the locks they pass.

mod ending;
mod first_holder;
mod late_holder;
mod queue;
mod requests;
mod revoked_waiter;
pub(crate) mod script;
#[cfg(all(feature = "redis", any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
mod three_ways;
mod two_clients;

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
    ending::{Ending, PATIENCE, Round, killed, sooner},
    first_holder::{FirstHolder, Meeting, Second},
    late_holder::late_holder,
    queue::{has, joined, turn, until_line, until_line_within},
    requests::{Rivals, counters, counting, requests},
    revoked_waiter::{Belief, Waiter, revoked_waiter},
    two_clients::two_clients,
};
