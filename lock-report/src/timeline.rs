//! What clients did, prepared for drawing.

use serde::{Deserialize, Serialize};

/// Actions and beliefs of clients, one lane each. Times are milliseconds from the first event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The clients, sorted by their first event.
    pub lanes: Vec<Lane>,
    /// The faults meanwhile.
    pub faults: Vec<FaultSpan>,
    /// The end of the last event.
    pub until: f64,
    /// Number of clients that are left out.
    pub left_out: usize,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Its name.
    pub client: String,
    /// Its waits and holds, in order.
    pub spans: Vec<Span>,
    /// Single events.
    pub marks: Vec<Mark>,
}

/// A time in which a client waits or holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The client's state.
    pub state: State,
    /// Start in ms.
    pub from: f64,
    /// End in ms.
    pub until: f64,
    /// The fencing token, while it holds.
    pub token: Option<u64>,
    /// The lock's name.
    pub name: String,
}

/// The state of a client in a `Span`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has asked and waits.
    Waits,
    /// It holds the lock, and believes so.
    Holds,
    /// It no longer holds the lock, and knows it or may know it.
    Past,
}

/// A single event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Time in ms.
    pub at: f64,
    /// The event.
    pub what: String,
}

/// A fault, from its start to its healing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultSpan {
    /// The fault and its target: "kill of the primary".
    pub what: String,
    /// Start in ms.
    pub from: f64,
    /// End in ms; `None` if it was not healed.
    pub until: Option<f64>,
}
