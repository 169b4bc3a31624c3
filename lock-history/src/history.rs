//! A whole history and its lines.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Attempt, Event, Fault, Header, Misfit, attempt};

/// Actions and beliefs of the clients in one run, and the faults that they met.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct History {
    /// The run.
    pub header: Header,
    /// The events. The events of one attempt are in the order in which they happened. Otherwise the
    /// order has no meaning.
    pub events: Vec<Event>,
    /// The faults, in any order.
    pub faults: Vec<Fault>,
}

/// Reason why lines are not a history.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// There is no first line.
    #[error("an empty history has no header")]
    Empty,
    /// Another version of this crate wrote it.
    #[error("version {found} of the format, not {}", Header::VERSION)]
    Version {
        /// The version in the header.
        found: u64,
    },
    /// A line does not have this format.
    #[error("line {number}: {source}")]
    Line {
        /// The line's number, from 1.
        number: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
}

/// Fields that distinguish a fault from an event, and a header of another version from this one.
#[derive(Deserialize)]
struct Marks {
    #[serde(default)]
    fault: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    history: Option<u64>,
}

impl History {
    /// An empty history.
    pub fn new(header: Header) -> Self {
        Self { header, events: Vec::new(), faults: Vec::new() }
    }

    /// Returns the history as lines, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let header = std::iter::once(line(&self.header));
        header.chain(self.faults.iter().map(line)).chain(self.events.iter().map(line))
    }

    /// Reads a history from its lines. Ignores empty lines.
    ///
    /// The error has the number of the first line that is wrong.
    pub fn from_lines<L: AsRef<str>>(
        lines: impl IntoIterator<Item = L>,
    ) -> Result<Self, FormatError> {
        let numbered = lines.into_iter().enumerate().map(|(index, line)| (index + 1, line));
        let mut lines = numbered.filter(|(_, line)| !line.as_ref().trim().is_empty());
        let (number, first) = lines.next().ok_or(FormatError::Empty)?;
        let mut history = Self::new(header(number, first.as_ref())?);
        for (number, line) in lines {
            let line = line.as_ref();
            match read::<Marks>(number, line)?.fault {
                Some(_) => history.faults.push(read(number, line)?),
                None => history.events.push(read(number, line)?),
            }
        }
        Ok(history)
    }

    /// Adds the events and faults of another history with the same clock, from another process.
    pub fn merge(&mut self, other: Self) {
        self.events.extend(other.events);
        self.faults.extend(other.faults);
    }

    /// Returns the faults that lasted at some time between `from` and `until`, in nanoseconds.
    pub fn faults_between(&self, from: u64, until: u64) -> impl Iterator<Item = &Fault> {
        let lasted = move |fault: &&Fault| {
            fault.from <= until && fault.until.is_none_or(|healed| healed >= from)
        };
        self.faults.iter().filter(lasted)
    }

    /// Returns the course of each attempt, in the order of their requests.
    ///
    /// [`Misfit`] if the events of an attempt cannot have happened in their order.
    pub fn attempts(&self) -> Result<Vec<Attempt>, Misfit> {
        attempt::of(&self.events)
    }
}

fn header(number: usize, line: &str) -> Result<Header, FormatError> {
    match read::<Marks>(number, line)?.history {
        Some(found) if found != u64::from(Header::VERSION) => Err(FormatError::Version { found }),
        _ => read(number, line),
    }
}

fn read<T: DeserializeOwned>(number: usize, line: &str) -> Result<T, FormatError> {
    serde_json::from_str(line).map_err(|source| FormatError::Line { number, source })
}

fn line(value: &impl Serialize) -> String {
    // The value is a struct of strings and numbers with string keys.
    serde_json::to_string(value).expect("every line of a history is JSON")
}
