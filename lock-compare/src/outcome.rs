//! The results of an experiment.

use std::time::Duration;

use lock_history::{Checker, Grade, History, Misfit};
use serde::{Deserialize, Serialize};

use crate::{
    Drawing, Plot, Timeline, Topic, Verdict, timeline::timeline, verdict::sign_of_distlock,
};

/// What the marks of a cell mean.
pub const TWO_MARKS: &str = "Two marks in a cell: the claim about the articles' lock, and distlock in \
                             the same case, ✓ it does its work, ✗ it does not.";

/// The result of an experiment on one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub verdict: Verdict,
    /// The reason in one sentence, with the deciding figure.
    pub sentence: String,
    /// The locks that were played: first the one that the claim is about, then distlock.
    pub sides: Vec<Side>,
    pub figures: Vec<Figure>,
    pub plots: Vec<Plot>,
}

impl Outcome {
    /// An outcome without sides and figures.
    pub(crate) fn new(verdict: Verdict, sentence: impl Into<String>) -> Self {
        let (sides, figures, plots) = Default::default();
        Self { verdict, sentence: sentence.into(), sides, figures, plots }
    }

    /// [`Verdict::Holds`] if the claim was observed, otherwise [`Verdict::Differs`].
    pub(crate) fn holds_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Holds } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::Breaks`] if the documented damage was observed, otherwise [`Verdict::Differs`].
    pub(crate) fn breaks_if(seen: bool, sentence: impl Into<String>) -> Self {
        let verdict = if seen { Verdict::Breaks } else { Verdict::Differs };
        Self::new(verdict, sentence)
    }

    /// [`Verdict::CannotBeAsked`], with the reason.
    pub(crate) fn cannot_be_asked(why: impl Into<String>) -> Self {
        Self::new(Verdict::CannotBeAsked, why)
    }

    /// [`Verdict::NotRun`], with the missing part.
    pub(crate) fn not_run(missing: impl Into<String>) -> Self {
        Self::new(Verdict::NotRun, missing)
    }

    /// Whether distlock did its work, in one of its plays at least; `None` if it was not played.
    pub(crate) fn distlock(&self) -> Option<bool> {
        let ours = self.sides.iter().filter(|side| side.nature == Nature::Distlock);
        ours.map(|side| side.well).reduce(|one, other| one || other)
    }

    /// The two marks of a cell, of which [`TWO_MARKS`] tells.
    pub fn signs(&self) -> String {
        let ours = self.distlock().map(|well| format!(" {}", sign_of_distlock(well)));
        self.verdict.sign().to_owned() + &ours.unwrap_or_default()
    }

    pub(crate) fn side(mut self, side: Side) -> Self {
        self.sides.push(side);
        self
    }

    pub(crate) fn sides(mut self, sides: impl IntoIterator<Item = Side>) -> Self {
        self.sides.extend(sides);
        self
    }

    pub(crate) fn figure(mut self, figure: Figure) -> Self {
        self.figures.push(figure);
        self
    }

    pub(crate) fn figures(mut self, figures: impl IntoIterator<Item = Figure>) -> Self {
        self.figures.extend(figures);
        self
    }

    pub(crate) fn plot(self, plot: Plot) -> Self {
        self.plots([plot])
    }

    pub(crate) fn plots(mut self, plots: impl IntoIterator<Item = Plot>) -> Self {
        self.plots.extend(plots);
        self
    }
}

/// The kind of implementation that plays a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
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
    pub(crate) fn words(self) -> &'static str {
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
    #[serde(skip)]
    pub history: Option<History>,
}

impl Side {
    pub(crate) fn new(
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

    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    pub(crate) fn story(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// The lock and what happened: "distlock: the next client waits".
    pub(crate) fn summary(&self) -> String {
        format!("{}: {}", self.lock, self.happened)
    }

    /// The summaries of several sides, separated by semicolons.
    pub(crate) fn summaries<'a>(sides: impl IntoIterator<Item = &'a Self>) -> String {
        sides.into_iter().map(Self::summary).collect::<Vec<_>>().join("; ")
    }

    /// Its timeline as a plot, if it has a trace. The title ends with the lock's name.
    pub(crate) fn plot(&self, title: &str, topic: impl Into<Option<Topic>>) -> Option<Plot> {
        let topic = topic.into();
        let (title, timeline) = (format!("{title}: {}", self.lock), self.timeline.clone()?);
        Some(Plot { title, topic, drawing: Drawing::Timeline(timeline) })
    }

    /// Adds its trace. The order of its tokens is not checked.
    pub(crate) fn played(self, history: History) -> Result<Self, Misfit> {
        self.traced(history, &Checker::new().tokens(Grade::None))
    }

    /// Adds its trace, with the checker's violations and the timeline made from it.
    ///
    /// [`Misfit`] if the trace is not a history.
    pub(crate) fn traced(mut self, history: History, checker: &Checker) -> Result<Self, Misfit> {
        let report = checker.check(&history)?;
        self.violations = report.violations.iter().map(ToString::to_string).collect();
        self.timeline = Some(timeline(&history)?);
        self.history = Some(history);
        Ok(self)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Its name: "requests per acquisition".
    pub name: String,
    pub value: f64,
    /// The unit: `ms`, `requests`, `x` for a ratio, empty for a plain count.
    pub unit: String,
    /// The 95 % interval, if there is one.
    pub interval: Option<(f64, f64)>,
}

impl Figure {
    pub(crate) fn count(name: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        Self { name: name.into(), value, unit: unit.into(), interval: None }
    }

    /// A duration, in milliseconds.
    pub(crate) fn time(name: impl Into<String>, value: Duration) -> Self {
        Self::count(name, value.as_secs_f64() * 1000.0, "ms")
    }

    pub(crate) fn ratio(name: impl Into<String>, value: f64, interval: (f64, f64)) -> Self {
        Self { interval: Some(interval), ..Self::count(name, value, "x") }
    }
}
