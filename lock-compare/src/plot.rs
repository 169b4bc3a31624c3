//! The drawings of an outcome.

use lock_report::Drawing;
use serde::{Deserialize, Serialize};

/// The meaning of a plot beyond its own experiment. The report puts such plots on its front.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The oversell case, step by step.
    Oversell,
    /// A failover, with holders and tokens.
    Failover,
    /// The wait depending on the place in the queue.
    Queue,
    /// Requests and wakes per acquisition: polling, watching, hand-over.
    Cost,
    /// Distributions of latency.
    Latency,
}

/// A drawing with its title.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// Its topic in the report. `None` if it is only in its cell.
    pub topic: Option<Topic>,
    /// The drawing.
    pub drawing: Drawing,
}

impl Plot {
    pub(crate) fn new(title: String, topic: Topic, drawing: Drawing) -> Self {
        Self { title, topic: Some(topic), drawing }
    }
}
