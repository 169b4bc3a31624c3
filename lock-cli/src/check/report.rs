//! The results, for people and programs.

use std::{io, process::ExitCode};

use lock_core::properties::Property;
use serde::Serialize;

use super::trial::{Ended, Played, Verdict};
use crate::{
    exit::{Code, Failure},
    print,
};

/// A store and its results.
#[derive(Serialize)]
pub(super) struct Report {
    store: String,
    /// Why nothing, or nothing more, was checked.
    error: Option<String>,
    /// What weakens locks there: see `Guarantees::cautions`.
    cautions: Vec<String>,
    /// Why no client was cut off; `None` if they were.
    uncut: Option<String>,
    promises: Vec<Promise>,
    #[serde(skip)]
    code: Option<Code>,
}

/// The result for a property.
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
    /// The event, or the reason why it was not checked.
    why: Option<String>,
    /// The failure of a first try. Then the verdict is that of a second one.
    first_try: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Broken,
    /// The check could not be completed.
    Failed,
    /// Some checks of a promise were not made.
    KeptInPart,
    Kept,
    NotChecked,
}

impl Report {
    /// A store that could not be checked.
    pub(super) fn failed(store: String, failure: Failure) -> Self {
        let code = Some(failure.code());
        let error = Some(failure.to_string());
        Self { store, error, cautions: Vec::new(), uncut: None, promises: Vec::new(), code }
    }

    pub(super) fn new(store: String, played: Played) -> Self {
        let failed = played.checks.iter().find_map(|ended| match &ended.verdict {
            Verdict::Failed(failure) => Some(failure.code()),
            _ => None,
        });
        let mut promises: Vec<Promise> = Vec::new();
        for Ended { property, check, verdict, first_try } in played.checks {
            if promises.last().is_none_or(|last| last.name != property.name) {
                promises.push(Promise::new(property));
            }
            if let Some(promise) = promises.last_mut() {
                promise.add(Check::new(check.name, verdict, first_try));
            }
        }
        let broken = promises.iter().any(|promise| promise.verdict == Word::Broken);
        let code = if broken { Some(Code::Broken) } else { failed };
        let error = played.gone.then(|| "the store went away".to_owned());
        let Played { cautions, uncut, .. } = played;
        Self { store, error, cautions, uncut, promises, code }
    }

    fn count(&self, verdict: Word) -> usize {
        self.promises.iter().filter(|promise| promise.verdict == verdict).count()
    }

    /// The result in a sentence.
    fn sum(&self) -> String {
        let store = &self.store;
        if let (Some(error), true) = (&self.error, self.promises.is_empty()) {
            return format!("{store}: not checked: {error}");
        }
        let (broken, in_part) = (self.count(Word::Broken), self.count(Word::KeptInPart));
        let kept = self.count(Word::Kept) + in_part;
        let sum = match broken {
            0 if kept == 1 => "keeps the one promise that was checked".to_owned(),
            0 => format!("keeps all {kept} promises that were checked"),
            _ => format!("BREAKS {broken} of {} promises that were checked", broken + kept),
        };
        let others = [
            (in_part, "of them in part"),
            (self.count(Word::Failed), "failed"),
            (self.count(Word::NotChecked), "not checked"),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0);
        let others: Vec<_> = others.map(|(count, words)| format!("; {count} {words}")).collect();
        let error = self.error.iter().map(|error| format!("; {error}"));
        format!("{store}: {sum}{}{}", others.concat(), error.collect::<String>())
    }
}

impl Promise {
    fn new(property: &Property) -> Self {
        let Property { name, words, .. } = *property;
        Self { name, words, verdict: Word::NotChecked, checks: Vec::new() }
    }

    fn add(&mut self, check: Check) {
        self.checks.push(check);
        let verdicts = || self.checks.iter().map(|check| check.verdict);
        let worst = verdicts().min().unwrap_or(Word::NotChecked);
        let in_part = worst == Word::Kept && verdicts().any(|verdict| verdict == Word::NotChecked);
        self.verdict = if in_part { Word::KeptInPart } else { worst };
    }

    /// A cell of the table.
    fn answer(&self) -> String {
        match self.verdict {
            Word::Broken => "NO".to_owned(),
            Word::Failed => "failed".to_owned(),
            Word::KeptInPart => {
                let kept = self.checks.iter().filter(|check| check.verdict == Word::Kept).count();
                format!("in part: {kept} of {} checks", self.checks.len())
            }
            Word::Kept => "yes".to_owned(),
            Word::NotChecked => match self.one_reason() {
                Some(check) => check.answer(),
                None => "not checked".to_owned(),
            },
        }
    }

    /// The check that stands for all of them, if none was made and the reason is the same.
    fn one_reason(&self) -> Option<&Check> {
        let first = self.checks.first()?;
        let alike = |check: &Check| (check.verdict, &check.why) == (Word::NotChecked, &first.why);
        self.checks.iter().all(alike).then_some(first)
    }

    /// Whether the table needs a row for a check.
    fn needs_more(&self, check: usize) -> bool {
        let check = &self.checks[check];
        let plain = check.verdict == Word::Kept && check.first_try.is_none();
        !plain && self.one_reason().is_none()
    }
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, first_try: Option<String>) -> Self {
        let (verdict, why) = match verdict {
            Verdict::Kept => (Word::Kept, None),
            Verdict::Broken(what) => (Word::Broken, Some(what)),
            Verdict::NotChecked(why) => (Word::NotChecked, Some(why)),
            Verdict::Failed(failure) => (Word::Failed, Some(failure.to_string())),
        };
        Self { name, verdict, why, first_try }
    }

    /// A cell of the table.
    fn answer(&self) -> String {
        let verdict = match self.verdict {
            Word::Broken => "NO",
            Word::Failed => "failed",
            Word::Kept | Word::KeptInPart => "yes",
            Word::NotChecked => "not checked",
        };
        let why = self.why.iter().map(|why| format!(": {why}"));
        let first = self.first_try.iter().map(|why| format!(", at a second try; the first: {why}"));
        [verdict.to_owned()].into_iter().chain(why).chain(first).collect()
    }
}

/// The worst of all: a broken promise, else the error of the first store that has one.
pub(super) fn code(reports: &[Report]) -> ExitCode {
    let codes: Vec<_> = reports.iter().filter_map(|report| report.code).collect();
    let worst = codes.iter().find(|code| **code == Code::Broken).or(codes.first());
    worst.map_or(ExitCode::SUCCESS, |code| (*code).into())
}

pub(super) fn print(json: bool, reports: &[Report]) -> io::Result<()> {
    if json {
        return print::json(&reports);
    }
    let checked: Vec<_> = reports.iter().filter(|report| !report.promises.is_empty()).collect();
    if !checked.is_empty() {
        let stores = checked.iter().map(|report| report.store.as_str());
        let headings: Vec<_> = ["PROMISE"].into_iter().chain(stores).collect();
        print::fitted(&headings, rows(&checked))?;
        print::line("")?;
    }
    for report in reports {
        for caution in &report.cautions {
            print::line(format!("{}: caution: {caution}", report.store))?;
        }
        if let Some(why) = &report.uncut {
            print::line(format!("{}: no client was cut off: {why}", report.store))?;
        }
        print::line(report.sum())?;
    }
    Ok(())
}

/// A row for each promise. Below it, a row for each check that was not kept everywhere. Each store
/// has a column.
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
