//! What a server says about itself, by field (`INFO`).

use redis::{Cmd, Value, cmd};

use super::answer::text;

/// The answers about one or more sections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(String);

impl Info {
    /// Returns the question for a section. It may be forbidden.
    pub(crate) fn question(section: &str) -> Cmd {
        let mut question = cmd("INFO");
        question.arg(section);
        question
    }

    /// Adds an answer.
    pub(crate) fn add(&mut self, answer: &Value) {
        self.0 += &text(answer);
        self.0 += "\n";
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }
}

impl From<&str> for Info {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
