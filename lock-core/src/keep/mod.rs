//! For drivers: what several of them keep, each said once.
//!
//! Everything here is optional. A driver whose store has sessions of its own needs less of it than
//! one whose store knows only keys that expire. Nothing here knows a store: what depends on one
//! comes in as an argument or by a small trait.
//!
//! | module | what it keeps |
//! |---|---|
//! | [`attempt`] | one attempt from its first request to its end, as one state |
//! | [`book`] | all attempts of a client, and when each is due for renewal |
//! | [`due`] | a task that works when something is due |
//! | [`wait`] | the wait for a grant, and what is checked before it is given out |
//! | [`departures`] | what attempts leave behind, removed several at a time |
//! | [`pool`] | sessions of the store, one for each TTL |
//! | [`opening`] | what comes of opening a session, told to all callers that wait for it |
//! | [`leftovers`] | what attempts have left in a session, until its janitor has removed it |
//! | [`observe`] | changes of the leader, told to one observer |
//! | [`backoff`] | pauses that grow |
//! | [`errors`] | the errors that drivers make |
//! | [`limits`] | times and counts that are the same on every store |
//! | [`poison`] | mutexes that cannot be poisoned |

pub mod attempt;
pub mod backoff;
pub mod book;
pub mod departures;
pub mod due;
pub mod errors;
pub mod leftovers;
pub mod limits;
pub mod observe;
pub mod opening;
pub mod poison;
pub mod pool;
pub mod wait;
