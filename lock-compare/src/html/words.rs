//! The words and numbers of the page.

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

/// Formats a number with about three significant digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => return "0".into(),
        size if !size.is_finite() => return "–".into(),
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a time of a timeline, given in milliseconds.
pub(super) fn time(ms: f64) -> String {
    match ms {
        1000.0.. => format!("{ms:.1} ms"),
        100.0.. => format!("{ms:.0} ms"),
        10.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

/// Formats a coordinate of a drawing. Tenths are enough.
pub(super) fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
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
    fn numbers_have_three_significant_digits() {
        let numbers = [0.0, 1234.5, 99.96, 2.5, 1.0, 0.1234, -2.7149, f64::NAN];
        let texts = ["0", "1234", "100", "2.5", "1", "0.123", "-2.71", "–"];
        for (value, text) in numbers.into_iter().zip(texts) {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn words_are_listed() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(listed(&words, "or"), "a, b or c");
        assert_eq!(listed(&words[..1], "or"), "a");
    }
}
