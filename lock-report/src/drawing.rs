//! What can be drawn.

use serde::{Deserialize, Serialize};

use crate::Timeline;

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
    /// The slow ends of distributions, on a logarithmic axis.
    Tails {
        /// The unit of the quantiles: "ms".
        y: String,
        /// The rows.
        rows: Vec<TailRow>,
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

/// The slow end of one distribution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TailRow {
    /// Its name.
    pub name: String,
    /// The quantiles 50, 99 and 99.9 %, and the greatest value.
    pub quantiles: [f64; 4],
}
