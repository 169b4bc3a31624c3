//! The figures of a contender under a workload.

use serde::{Deserialize, Serialize};

/// One value per round, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds(pub Vec<f64>);

/// Quantiles of a time in microseconds, each with one value per round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half are as fast.
    pub p50: Rounds,
    /// 99 %.
    pub p99: Rounds,
    /// 99.9 %.
    pub p999: Rounds,
    /// The slowest.
    pub max: Rounds,
}

/// How evenly workers are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// The fewest turns of a worker, as a part of an even share.
    pub least: Rounds,
    /// The most turns of a worker, as a part of an even share.
    pub most: Rounds,
    /// Of 100 grants, how many overtook a worker: it had asked before a grant of the name, and the
    /// one that overtook it asked after that grant.
    pub out_of_order: Rounds,
    /// The spread of waits: p99 divided by p50.
    pub spread: Rounds,
}

/// All figures of one contender on one store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Acquisitions per second.
    pub rate: Rounds,
    /// Scheduled start to grant.
    pub acquire: Quantiles,
    /// Begin of a release to the next grant of the name. `None` where nobody waited. Of a killed
    /// holder or leader: from the kill to the next grant.
    pub handover: Option<Quantiles>,
    /// `None` for one worker per name.
    pub fairness: Option<Fairness>,
    /// Requests per acquisition that the server counted, renewals and all.
    pub requests: Option<Rounds>,
    /// Events that the server sent, per acquisition.
    pub wakes: Option<Rounds>,
    /// Connections of its clients, once they have warmed up.
    pub connections: Option<Rounds>,
    /// Watches of its clients, once they have warmed up.
    pub watches: Option<Rounds>,
    /// Processor time of all clients per acquisition, in microseconds. Empty where one is killed.
    pub client_cpu: Rounds,
    /// Processor time of the server per acquisition, in microseconds, if the server is ours.
    pub server_cpu: Option<Rounds>,
}
