//! The frame of the page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::Report;

use super::{Detail, advice, evidence, front, glossary, head, lists, matrix, plots, security};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn page(report: &Report, detail: Detail) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (settings())
            body {
                (plots::patterns())
                a.skip href="#matrix" { "To the verdicts" }
                (head::banner(report))
                main {
                    (matrix::section(report))
                    (section("words", "Words", glossary::words()))
                    (section("advice", "Which store to take", advice::cards(report)))
                    (section("plots", "Plots", front::topics(report, detail)))
                    (section("differs", "What differs from the documents", lists::differing(report)))
                    (section("missing", "What is missing", lists::missing(report)))
                    (section("evidence", "All evidence", evidence::claims(report, detail)))
                }
                footer { (head::facts(report)) }
                (dialog())
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// A part of the page with its heading.
fn section(id: &str, title: &str, content: Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (title) }
            (content)
        }
    }
}

fn settings() -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(security::policy(STYLE, SCRIPT));
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="generator" content="distlock compare";
            title { (head::TITLE) }
            link rel="icon" href="data:,";
            style { (PreEscaped(STYLE)) }
        }
    }
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
