//! The cells that differ from the documents, failed, or were not run.

use maud::{Markup, html};

use crate::{Cell, ClaimText, Report, Row, Verdict};

use super::matrix;

pub(super) fn differing(report: &Report) -> Markup {
    let rows = with(report, Verdict::Differs);
    html! {
        @if rows.is_empty() { p { "Nothing in this run." } }
        @else { (list(&rows, |claim| &claim.claimed)) }
    }
}

pub(super) fn missing(report: &Report) -> Markup {
    let failed = with(report, Verdict::Failed);
    html! {
        @if report.missing.is_empty() { p { "Nothing had to be left out of this run." } }
        @else { ul.list { @for line in &report.missing { li { (line) } } } }
        @if !failed.is_empty() {
            h3 { "Experiments that went wrong, so that there is no verdict" }
            (list(&failed, |claim| &claim.title))
        }
    }
}

fn list(rows: &[(&Row, Vec<&Cell>)], words: fn(&ClaimText) -> &String) -> Markup {
    html! {
        ul.list {
            @for (row, cells) in rows {
                li {
                    b { "C" (row.claim.number) } " " (words(&row.claim))
                    ul { (reasons(row.claim.number, cells)) }
                }
            }
        }
    }
}

/// The rows with cells of a verdict, and these cells.
fn with(report: &Report, verdict: Verdict) -> Vec<(&Row, Vec<&Cell>)> {
    let rows = report.rows.iter().map(|row| {
        let cells = row.cells.iter().filter(|cell| cell.outcome.verdict == verdict);
        (row, cells.collect::<Vec<_>>())
    });
    rows.filter(|(_, cells)| !cells.is_empty()).collect()
}

/// Each sentence once, with its stores.
fn reasons(number: u8, cells: &[&Cell]) -> Markup {
    let mut said: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for cell in cells.iter().copied() {
        let sentence = &*cell.outcome.sentence;
        match said.iter_mut().find(|(other, _)| *other == sentence) {
            Some((_, stores)) => stores.push(cell),
            None => said.push((sentence, vec![cell])),
        }
    }
    html! {
        @for (sentence, cells) in said {
            li {
                @for (place, cell) in cells.iter().enumerate() {
                    @if place > 0 { ", " }
                    a href={ "#" (matrix::id(number, cell.store)) } { (cell.store) }
                }
                ": " (sentence)
            }
        }
    }
}
