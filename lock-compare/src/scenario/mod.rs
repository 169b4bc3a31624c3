//! What several experiments play, with whatever lock they are given.

mod crash;
mod dead_waiter;
mod expired_sale;
mod late_holder;
mod late_writer;
mod line;
mod requests;
pub(crate) mod script;
#[cfg(all(feature = "redis", any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
mod three_ways;
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
    crash::crash,
    dead_waiter::{Looker, dead_waiter},
    expired_sale::{Sale, expired_sale},
    late_holder::late_holder,
    late_writer::{Stock, late_writer},
    line::{Line, Queued, line},
    requests::{counters, counting, lasting, requests, until_idle},
};
