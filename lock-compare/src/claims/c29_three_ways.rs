//! C29: a database can lock in three ways, all slow.

use crate::{Claim, Failure, Outcome, Stage, Store};

pub(super) const CLAIM: Claim = Claim {
    number: 29,
    title: "Three ways to lock in a database",
    claimed: "A database can lock in three ways: a unique key, a pessimistic row lock (SELECT .. FOR \
              UPDATE), an optimistic version; all are cumbersome and slow beside the others.",
    done: "One client locks and unlocks in each of the three ways, in turns with the usual lock on a \
           Redis that keeps nothing on disk (SET NX PX and the script), all through bare clients, \
           and with distlock on the same database. The database keeps each commit.",
    measured: "The time of a lock and unlock: the ratio of the medians, round by round, with its \
               interval of 95 %.",
    threshold: "Holds if each way takes more than twice as long as on Redis with all of the \
                interval; differs if Redis takes more than 6 times as long as one of them; else no \
                difference.",
};

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match stage.store {
        #[cfg(all(
            feature = "redis",
            any(feature = "mysql", feature = "postgres", feature = "sqlite")
        ))]
        Store::MySql | Store::Postgres | Store::Sqlite => crate::scenario::three_ways(stage).await,
        #[cfg(not(feature = "redis"))]
        Store::MySql | Store::Postgres | Store::Sqlite => {
            Err(crate::Missing::client_of(Store::Redis).into())
        }
        _ => Ok(Outcome::cannot_be_asked("it is no database with rows")),
    }
}
