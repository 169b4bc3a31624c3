//! The drawings of an outcome.

use serde::{Deserialize, Serialize};

use crate::Timeline;

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

/// The kinds of plots.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "drawing", rename_all = "snake_case")]
pub enum Drawing {
    /// Points with numeric x values.
    Lines {
        /// Label of the x axis: "place in line".
        x: String,
        /// Label of the y axis: "ms until granted".
        y: String,
        /// Whether both axes are logarithmic.
        log: bool,
        /// The lines.
        series: Vec<Series>,
    },
    /// A bar per label and series.
    Bars {
        /// The measured quantity.
        y: String,
        /// The groups.
        labels: Vec<String>,
        /// The series, each with a value per label.
        series: Vec<BarSeries>,
    },
    /// Quantiles per label: a distribution as 5, 25, 50, 75, 95, 99 %.
    Spread {
        /// The unit of the quantiles: "ms".
        y: String,
        /// The rows.
        rows: Vec<SpreadRow>,
    },
    /// Actions and beliefs of clients.
    Timeline(Timeline),
}

/// A line of points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// Bars of one colour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BarSeries {
    /// Its name.
    pub name: String,
    /// A value per label.
    pub values: Vec<f64>,
}

/// One distribution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpreadRow {
    /// Its name.
    pub name: String,
    /// The quantiles 5, 25, 50, 75, 95 and 99 %.
    pub quantiles: [f64; 6],
}
