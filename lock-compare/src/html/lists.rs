//! What differs from the documents, and what is missing.

use maud::{Markup, html};

use crate::{Report, Verdict};

use super::matrix;

pub(super) fn differing(report: &Report) -> Markup {
    let differs = |verdict| verdict == Verdict::Differs;
    let cells: Vec<_> = report.cells().filter(|(_, cell)| differs(cell.outcome.verdict)).collect();
    html! {
        section #differs aria-labelledby="differs-title" {
            h2 #differs-title { "What differs from the documents" }
            @if cells.is_empty() { p { "Nothing in this run." } }
            @else {
                ul.list {
                    @for (claim, cell) in cells {
                        li {
                            a href={ "#" (matrix::id(claim.number, cell.store)) } {
                                "C" (claim.number) " " (claim.title) ", " (cell.store)
                            }
                            ": " (cell.outcome.sentence)
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn missing(report: &Report) -> Markup {
    html! {
        section #missing aria-labelledby="missing-title" {
            h2 #missing-title { "What is missing" }
            @if report.missing.is_empty() { p { "Nothing: every cell of this run was played." } }
            @else { ul.list { @for line in &report.missing { li { (line) } } } }
        }
    }
}
