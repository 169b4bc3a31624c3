//! The results of an experiment.

use std::time::Duration;

use lock_history::{History, Misfit};
use serde::{Deserialize, Serialize};

use crate::{Timeline, Verdict};

/// The result of an experiment on one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason in one sentence, with the deciding figure.
    pub sentence: String,
    /// The locks that were played: first the one that the claim is about, then distlock.
    pub sides: Vec<Side>,
    /// The measured figures.
    pub figures: Vec<Figure>,
    /// The drawings.
    pub plots: Vec<Plot>,
}

impl Outcome {
    /// An outcome without sides and figures.
    pub fn new(verdict: Verdict, sentence: impl Into<String>) -> Self {
        let (sides, figures, plots) = Default::default();
        Self { verdict, sentence: sentence.into(), sides, figures, plots }
    }

    /// [`Verdict::Holds`] if the claim was observed, otherwise [`Verdict::Differs`].
    pub fn holds_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Holds } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::Breaks`] if the documented damage was observed, otherwise [`Verdict::Differs`].
    pub fn breaks_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Breaks } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::CannotBeAsked`], with the reason.
    pub fn cannot_be_asked(why: impl Into<String>) -> Self {
        Self::new(Verdict::CannotBeAsked, why)
    }

    /// [`Verdict::NotRun`], with the missing part.
    pub fn not_run(missing: impl Into<String>) -> Self {
        Self::new(Verdict::NotRun, missing)
    }

    /// Adds the behaviour of a lock.
    #[must_use]
    pub fn side(mut self, side: Side) -> Self {
        self.sides.push(side);
        self
    }

    /// Adds the behaviour of several locks.
    #[must_use]
    pub fn sides(mut self, sides: impl IntoIterator<Item = Side>) -> Self {
        self.sides.extend(sides);
        self
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }

    /// Adds a plot.
    #[must_use]
    pub fn plot(mut self, plot: Plot) -> Self {
        self.plots.push(plot);
        self
    }
}

/// The kind of implementation that plays a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// distlock.
    Distlock,
    /// A lock printed in an article, sent to the real server through the bare client crate.
    AsPrinted,
    /// Another project's real program or library.
    Program,
    /// Another client's protocol, played by this program on the real server.
    Imitation,
    /// A wrong lock on a store in this process, which has no such commands.
    Simulation,
}

impl Nature {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Distlock => "distlock",
            Self::AsPrinted => "as printed, through the bare client",
            Self::Program => "the real program",
            Self::Imitation => "imitation",
            Self::Simulation => "simulation",
        }
    }
}

/// The behaviour of one lock in an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The lock: "SETNX, then EXPIRE".
    pub lock: String,
    /// The kind of implementation.
    pub nature: Nature,
    /// The events in one sentence.
    pub happened: String,
    /// Whether the lock kept its promises: exclusion, nothing left behind, and so on.
    pub well: bool,
    /// Lines of evidence: two holders at the same time, the key that was left, a reply.
    pub evidence: Vec<String>,
    /// The findings of the history checker: each violation as text.
    pub violations: Vec<String>,
    /// Actions and beliefs of the clients, to be drawn.
    pub timeline: Option<Timeline>,
    /// The file name of the trace in the folder of traces, if traces were kept.
    pub trace: Option<String>,
    /// The trace.
    #[serde(skip)]
    pub history: Option<History>,
}

impl Side {
    /// A side without a trace.
    pub fn new(
        lock: impl Into<String>,
        nature: Nature,
        well: bool,
        happened: impl Into<String>,
    ) -> Self {
        Self {
            lock: lock.into(),
            nature,
            happened: happened.into(),
            well,
            evidence: Vec::new(),
            violations: Vec::new(),
            timeline: None,
            trace: None,
            history: None,
        }
    }

    /// Adds a line of evidence.
    #[must_use]
    pub fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Adds its trace, with the checker's violations and the timeline made from it.
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the trace is not a history.
    pub fn traced(
        mut self,
        history: History,
        checker: &lock_history::Checker,
    ) -> Result<Self, Misfit> {
        let report = checker.check(&history)?;
        self.violations = report.violations.iter().map(ToString::to_string).collect();
        self.timeline = Some(Timeline::of(&history)?);
        self.history = Some(history);
        Ok(self)
    }
}

/// A measured figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Its name: "requests per acquisition".
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit: `ms`, `requests`, `x` for a ratio, empty for a plain count.
    pub unit: String,
    /// The 95 % interval, if there is one.
    pub interval: Option<(f64, f64)>,
}

impl Figure {
    /// A count.
    pub fn count(name: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        Self { name: name.into(), value, unit: unit.into(), interval: None }
    }

    /// A duration, in milliseconds.
    pub fn time(name: impl Into<String>, value: Duration) -> Self {
        Self::count(name, value.as_secs_f64() * 1000.0, "ms")
    }

    /// A ratio.
    pub fn ratio(name: impl Into<String>, value: f64, interval: (f64, f64)) -> Self {
        Self { interval: Some(interval), ..Self::count(name, value, "x") }
    }
}

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
