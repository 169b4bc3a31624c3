//! What people and programs are told.

use std::{io, process::ExitCode};

use lock_core::properties::Property;
use serde::Serialize;

use super::trial::{Ended, Verdict};
use crate::{
    exit::{Code, Failure},
    print,
};

/// A store, and what it keeps.
#[derive(Serialize)]
pub(super) struct Report {
    store: String,
    /// Why nothing was checked.
    error: Option<String>,
    promises: Vec<Promise>,
    #[serde(skip)]
    code: Option<Code>,
}

/// What became of a property.
#[derive(Serialize)]
struct Promise {
    name: &'static str,
    words: &'static str,
    verdict: Word,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    verdict: Word,
    /// What happened, or why it was not checked.
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Broken,
    /// The check did not come to its end.
    Failed,
    Kept,
    NotChecked,
}

impl Report {
    /// A store that could not be checked.
    pub(super) fn failed(store: String, failure: Failure) -> Self {
        let code = Some(failure.code());
        Self { store, error: Some(failure.to_string()), promises: Vec::new(), code }
    }

    pub(super) fn new(store: String, ended: Vec<Ended>) -> Self {
        let failed = ended.iter().find_map(|ended| match &ended.verdict {
            Verdict::Failed(failure) => Some(failure.code()),
            _ => None,
        });
        let mut promises: Vec<Promise> = Vec::new();
        for Ended { property, check, verdict } in ended {
            if promises.last().is_none_or(|last| last.name != property.name) {
                promises.push(Promise::new(property));
            }
            if let Some(promise) = promises.last_mut() {
                promise.add(Check::new(check.name, verdict));
            }
        }
        let broken = promises.iter().any(|promise| promise.verdict == Word::Broken);
        let code = if broken { Some(Code::Broken) } else { failed };
        Self { store, error: None, promises, code }
    }

    fn count(&self, verdict: Word) -> usize {
        self.promises.iter().filter(|promise| promise.verdict == verdict).count()
    }

    /// In a sentence.
    fn sum(&self) -> String {
        let store = &self.store;
        if let Some(error) = &self.error {
            return format!("{store}: not checked: {error}");
        }
        let (broken, kept) = (self.count(Word::Broken), self.count(Word::Kept));
        let sum = match broken {
            0 => format!("keeps all {kept} promises that were checked"),
            _ => format!("BREAKS {broken} of {} promises that were checked", broken + kept),
        };
        let others = [(Word::Failed, "failed"), (Word::NotChecked, "not checked")];
        let others = others.map(|(verdict, words)| (self.count(verdict), words));
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: Vec<_> = others.map(|(count, words)| format!("; {count} {words}")).collect();
        format!("{store}: {sum}{}", others.concat())
    }
}

impl Promise {
    fn new(property: &Property) -> Self {
        let Property { name, words, .. } = *property;
        Self { name, words, verdict: Word::NotChecked, checks: Vec::new() }
    }

    fn add(&mut self, check: Check) {
        self.verdict = self.verdict.min(check.verdict);
        self.checks.push(check);
    }

    /// A cell of the table.
    fn answer(&self) -> String {
        match self.verdict {
            Word::Broken => "NO".to_owned(),
            Word::Failed => "failed".to_owned(),
            Word::Kept => "yes".to_owned(),
            Word::NotChecked => match self.one_reason() {
                Some(check) => check.answer(),
                None => "not checked".to_owned(),
            },
        }
    }

    /// The check that speaks for all of them, where none was made for one and the same reason.
    fn one_reason(&self) -> Option<&Check> {
        let first = self.checks.first()?;
        let alike = |check: &Check| (check.verdict, &check.why) == (Word::NotChecked, &first.why);
        self.checks.iter().all(alike).then_some(first)
    }

    /// Whether more is to be said about a check.
    fn needs_more(&self, check: usize) -> bool {
        self.checks[check].verdict != Word::Kept && self.one_reason().is_none()
    }
}

impl Check {
    fn new(name: &'static str, verdict: Verdict) -> Self {
        let (verdict, why) = match verdict {
            Verdict::Kept => (Word::Kept, None),
            Verdict::Broken(what) => (Word::Broken, Some(what)),
            Verdict::NotChecked(why) => (Word::NotChecked, Some(why)),
            Verdict::Failed(failure) => (Word::Failed, Some(failure.to_string())),
        };
        Self { name, verdict, why }
    }

    /// A cell of the table.
    fn answer(&self) -> String {
        let verdict = match self.verdict {
            Word::Broken => "NO",
            Word::Failed => "failed",
            Word::Kept => "yes",
            Word::NotChecked => "not checked",
        };
        match &self.why {
            Some(why) => format!("{verdict}: {why}"),
            None => verdict.to_owned(),
        }
    }
}

/// The worst of all: a broken promise, else the first store's trouble.
pub(super) fn code(reports: &[Report]) -> ExitCode {
    let codes: Vec<_> = reports.iter().filter_map(|report| report.code).collect();
    let worst = codes.iter().find(|code| **code == Code::Broken).or(codes.first());
    worst.map_or(ExitCode::SUCCESS, |code| (*code).into())
}

pub(super) fn print(json: bool, reports: &[Report]) -> io::Result<()> {
    if json {
        return print::json(&reports);
    }
    let checked: Vec<_> = reports.iter().filter(|report| report.error.is_none()).collect();
    if !checked.is_empty() {
        let stores = checked.iter().map(|report| report.store.as_str());
        let headings: Vec<_> = ["PROMISE"].into_iter().chain(stores).collect();
        print::fitted(&headings, rows(&checked))?;
        print::text("")?;
    }
    reports.iter().try_for_each(|report| print::text(report.sum()))
}

/// A row for each promise, and below it one for each check that was not kept everywhere; a column for each
/// store.
fn rows(reports: &[&Report]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (number, promise) in reports[0].promises.iter().enumerate() {
        let all: Vec<_> = reports.iter().map(|report| &report.promises[number]).collect();
        rows.push(row(promise.words.to_owned(), all.iter().map(|promise| promise.answer())));
        for (number, check) in promise.checks.iter().enumerate() {
            if all.iter().any(|promise| promise.needs_more(number)) {
                let words = format!("  {}", check.name.replace('_', " "));
                rows.push(row(words, all.iter().map(|promise| promise.checks[number].answer())));
            }
        }
    }
    rows
}

fn row(first: String, others: impl Iterator<Item = String>) -> Vec<String> {
    [first].into_iter().chain(others).collect()
}
