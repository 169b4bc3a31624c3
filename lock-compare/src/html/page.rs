//! The parts of the page in their order.

use lock_report::section;
use maud::{Markup, html};

use crate::Report;

use super::{Detail, advice, evidence, glossary, head, lists, matrix, plots};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn page(report: &Report, detail: Detail) -> Markup {
    let body = html! {
        a.skip href="#matrix" { "To the verdicts" }
        (head::banner(report))
        main {
            (matrix::section(report))
            (section("words", "Words", glossary::words()))
            (section("advice", "Which store to take", advice::cards(report)))
            (section("plots", "Plots", plots::topics(report, detail)))
            (section("differs", "What differs from the documents", lists::differing(report)))
            (section("missing", "What is missing", lists::missing(report)))
            (section("evidence", "All evidence", evidence::claims(report, detail)))
        }
        footer { (head::facts(report)) }
        (dialog())
    };
    lock_report::page(head::TITLE, "distlock compare", STYLE, SCRIPT, &body)
}

/// The dialog. The script fills and shows it.
fn dialog() -> Markup {
    html! {
        dialog #panel aria-labelledby="panel-title" {
            div.bar {
                h2 #panel-title { }
                button.close type="button" { "Close" }
            }
            div.body { }
        }
    }
}
