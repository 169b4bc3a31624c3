//! The report as one self-contained HTML page.

mod answers;
mod belief;
mod plots;
mod sweeps;
mod table;

use lock_report::{command, origin, page, section};
use maud::{Markup, html};

use crate::{Report, Section, columns::ALL, words::load};

pub(crate) use self::{
    answers::{answers, own_cost},
    belief::beliefs,
    table::figures,
};

const TITLE: &str = "Distributed locks: what they cost";

/// Returns the report as one HTML page, with its style, script and drawings in it. It loads
/// nothing, runs only its own script, and can be read without it.
pub fn html(report: &Report) -> String {
    let body = html! {
        a.skip href="#answers" { "To the answers" }
        (banner(report))
        main {
            (section("answers", "Answers", answers::cards(report)))
            (section("belief", "Read this before you believe a lock benchmark", belief::points()))
            @for part in &report.sections { (section(&part.preset, &part.preset, preset(part))) }
            @if !report.sweeps.is_empty() {
                (section("sweeps", "How costs grow", sweeps::all(report)))
            }
            (section("method", "How it was measured", method(report)))
        }
        footer { (facts(report)) }
    };
    page(TITLE, "distlock bench", "", "", &body).into_string()
}

fn banner(report: &Report) -> Markup {
    let day = report.started.split('T').next().unwrap_or_default();
    html! {
        header {
            h1 { (TITLE) }
            p.lead {
                "Locks of distlock on real stores. Beside each stand, in turns and in the same \
                 run, the bare client of the store, and the usual way to lock there."
            }
            nav aria-label="Parts of this page" {
                a href="#answers" { "Answers" }
                a href="#belief" { "Before you believe" }
                @for part in &report.sections { a href={ "#" (part.preset) } { (part.preset) } }
                @if !report.sweeps.is_empty() { a href="#sweeps" { "How costs grow" } }
                a href="#method" { "Method" }
                a href="#run" { "The run" }
                span.when { (day) ", " (report.machine.cores) " cores" }
            }
        }
    }
}

/// A preset: what it models, its figures and its drawings.
fn preset(section: &Section) -> Markup {
    html! {
        p { (section.models) " " (load(section)) }
        @if !section.is_outage() {
            p.note {
                "Each figure is the median of the rounds; x distlock is the median of their \
                 ratios: a contender's rate divided by distlock's, with their interval. \
                 Turns are parts of an even share. Requests, wakes and processor time \
                 are per acquisition, connections and watches of all clients together."
            }
        }
        (table::figures(section, &ALL).html("Figures"))
        (plots::all(section))
    }
}

fn method(report: &Report) -> Markup {
    html! {
        ul.list { @for line in &report.method { li { (line) } } }
        h3 { "What is missing" }
        @if report.missing.is_empty() { p { "Nothing had to be left out of this run." } }
        @else { ul.list { @for line in &report.missing { li { (line) } } } }
    }
}

fn facts(report: &Report) -> Markup {
    html! {
        h2 #run { "The run" }
        dl.facts {
            (origin(&report.machine, &report.versions, &report.started, report.took))
            dt { "Command" }
            dd { (command(&report.command)) }
        }
    }
}
