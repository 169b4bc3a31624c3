//! Locks by the majority of independent servers: Redlock.
//!
//! | file | content |
//! |---|---|
//! | `redlock` | the driver |
//! | `store` | its requests: those of a store without a queue |
//! | `acquire`, `renew`, `release`, `look` | each request, sent to all nodes |
//! | `tally` | counting of votes, without a network |
//! | `script`, `vote` | the scripts, and what stands in a node's key |
//! | `node` | one server and the way to it |

mod acquire;
mod config;
mod fault;
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
