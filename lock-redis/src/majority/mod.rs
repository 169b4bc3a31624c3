//! Locks by the majority of independent servers: Redlock.
//!
//! | file | content |
//! |---|---|
//! | `redlock` | the driver |
//! | `store` | its requests: those of a store without a queue |
//! | `acquire`, `renew`, `release`, `look` | each request, sent to all nodes |
//! | `janitor` | taking votes back from a node that is slow or down |
//! | `asked` | which nodes may have an attempt's vote |
//! | `tally` | counting of votes, without a network |
//! | `script`, `vote` | the scripts, and what stands in a node's key |
//! | `node` | one server and the way to it |

mod acquire;
mod asked;
mod config;
mod fault;
mod janitor;
mod look;
mod node;
mod promises;
mod redlock;
mod release;
mod renew;
mod script;
mod store;
mod tally;
mod vote;

pub use self::{config::RedlockConfig, redlock::Redlock};
