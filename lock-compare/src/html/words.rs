//! The words and numbers of the page.

pub(super) use lock_report::number;

use crate::{Store, Verdict};

/// One or two words, for a cell of the matrix.
pub(super) fn short(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Breaks => "breaks",
        Verdict::Differs => "differs",
        Verdict::NoDifference => "same",
        Verdict::CannotBeAsked => "n/a",
        Verdict::NotRun => "not run",
        Verdict::Failed => "failed",
    }
}

pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotRun => "notrun",
        Verdict::CannotBeAsked => "na",
        other => short(other),
    }
}

/// The meaning of a verdict, for the legend.
pub(super) fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "seen as claimed",
        Verdict::Breaks => "the documented damage was seen",
        Verdict::Differs => "the opposite was seen",
        Verdict::NoDifference => "none is faster or cheaper",
        Verdict::CannotBeAsked => "no meaning for this store",
        Verdict::NotRun => "something is missing",
        Verdict::Failed => "the experiment went wrong",
    }
}

/// A store's name for narrow places.
pub(super) fn brief(store: Store) -> &'static str {
    match store {
        Store::ZooKeeper => "ZooK.",
        Store::Postgres => "PgSQL",
        Store::Memory => "mem.",
        other => other.name(),
    }
}

/// The clients that can share a lock of the store.
pub(super) fn reach(store: Store) -> &'static str {
    match store {
        Store::Memory => "within one process",
        Store::Sqlite => "between the processes of one machine",
        _ => "between all machines that reach the server",
    }
}

/// Joins words: "one, two or three".
pub(super) fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_listed() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words, "or"), "a, b or c");
        assert_eq!(listed(&words[..1], "or"), "a");
    }
}
