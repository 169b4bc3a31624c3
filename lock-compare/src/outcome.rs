//! What an experiment hands over.

use std::time::Duration;

use lock_history::{History, Misfit};
use serde::{Deserialize, Serialize};

use crate::{Timeline, Verdict};

/// What an experiment on one store came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason in one sentence, with the figure that decides.
    pub sentence: String,
    /// The locks that were played, the one that the claim is about first, distlock beside it.
    pub sides: Vec<Side>,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// What can be drawn.
    pub plots: Vec<Plot>,
}

impl Outcome {
    /// An outcome without sides and figures yet.
    pub fn new(verdict: Verdict, sentence: impl Into<String>) -> Self {
        let (sides, figures, plots) = Default::default();
        Self { verdict, sentence: sentence.into(), sides, figures, plots }
    }

    /// [`Verdict::Holds`] if it was seen as claimed, else [`Verdict::Differs`].
    pub fn holds_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Holds } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::Breaks`] if the damage was seen as documented, else [`Verdict::Differs`].
    pub fn breaks_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Breaks } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::CannotBeAsked`], and why.
    pub fn cannot_be_asked(why: impl Into<String>) -> Self {
        Self::new(Verdict::CannotBeAsked, why)
    }

    /// [`Verdict::NotRun`], and what is missing.
    pub fn not_run(missing: impl Into<String>) -> Self {
        Self::new(Verdict::NotRun, missing)
    }

    /// With what a lock did.
    #[must_use]
    pub fn side(mut self, side: Side) -> Self {
        self.sides.push(side);
        self
    }

    /// With what several locks did.
    #[must_use]
    pub fn sides(mut self, sides: impl IntoIterator<Item = Side>) -> Self {
        self.sides.extend(sides);
        self
    }

    /// With a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }

    /// With a plot.
    #[must_use]
    pub fn plot(mut self, plot: Plot) -> Self {
        self.plots.push(plot);
        self
    }
}

/// Who plays a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// distlock.
    Distlock,
    /// What an article prints, sent to the real server through the bare client crate.
    AsPrinted,
    /// The real program or library of somebody else.
    Program,
    /// Another client's protocol, carried out by this program on the real server.
    Imitation,
    /// A wrong lock on a store in this process, which knows no such commands.
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

/// What one lock did in an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Which lock: "SETNX, then EXPIRE".
    pub lock: String,
    /// Who plays it.
    pub nature: Nature,
    /// What happened, in one sentence.
    pub happened: String,
    /// Whether the lock did its work: exclusion was kept, nothing was left, and so on.
    pub well: bool,
    /// Lines of evidence: two holders at the same time, the key that was left, a reply.
    pub evidence: Vec<String>,
    /// What the checker of histories says: each violation, as text.
    pub violations: Vec<String>,
    /// What the clients did and believed, to be drawn.
    pub timeline: Option<Timeline>,
    /// The file name of the trace below the folder of traces, if they were kept.
    pub trace: Option<String>,
    /// The trace.
    #[serde(skip)]
    pub history: Option<History>,
}

impl Side {
    /// A side of which nothing was traced yet.
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

    /// With a line of evidence.
    #[must_use]
    pub fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// With its trace: the checker's violations and the timeline are made of it.
    ///
    /// # Errors
    ///
    /// [`Misfit`] if the trace is none.
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
    /// What it is: "requests per acquisition".
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit: `ms`, `requests`, `x` for a ratio, empty for a plain count.
    pub unit: String,
    /// The interval of 95 %, if there is one.
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

/// What a plot shows beyond its own experiment: the report puts such plots on its front.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The oversell case as it happens.
    Oversell,
    /// A failover, with holders and tokens.
    Failover,
    /// The wait over the place in line.
    Queue,
    /// Requests and wakes per acquisition: polling, watching, hand-over.
    Cost,
    /// Distributions of latency.
    Latency,
}

/// Something to draw.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// Where it stands in the report, if not only in its cell.
    pub topic: Option<Topic>,
    /// What.
    pub drawing: Drawing,
}

/// The kinds of plots.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "drawing", rename_all = "snake_case")]
pub enum Drawing {
    /// Points over numbers.
    Lines {
        /// What stands below: "place in line".
        x: String,
        /// What stands beside: "ms until granted".
        y: String,
        /// Whether both axes are logarithmic.
        log: bool,
        /// The lines.
        series: Vec<Series>,
    },
    /// A bar per label and series.
    Bars {
        /// What the bars measure.
        y: String,
        /// The groups.
        labels: Vec<String>,
        /// Each with a value per label.
        series: Vec<BarSeries>,
    },
    /// Quantiles per label: a distribution as 5, 25, 50, 75, 95, 99 %.
    Spread {
        /// What is spread: "ms".
        y: String,
        /// One row each.
        rows: Vec<SpreadRow>,
    },
    /// What clients did and believed.
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
    /// Of what.
    pub name: String,
    /// The quantiles 5, 25, 50, 75, 95 and 99 %.
    pub quantiles: [f64; 6],
}
