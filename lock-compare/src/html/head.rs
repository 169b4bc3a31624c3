//! The introduction of the page, and the origin of its figures.

use lock_report::{command, origin};
use maud::{Markup, html};

use crate::{Pace, Part, Report, Verdict};

use super::words::{class, meaning};

pub(super) const TITLE: &str = "Distributed locks: what articles claim, and what was seen";

pub(super) fn banner(report: &Report) -> Markup {
    let claims = report.rows.len();
    html! {
        header {
            h1 { (TITLE) }
            p.lead {
                "Articles compare locks on Redis, etcd, ZooKeeper and SQL databases; here "
                (claims) " of their claims " (if claims == 1 { "is" } else { "are" })
                " put to the test on real stores, with the articles' own locks and with distlock \
                 beside them. A cell is the verdict of one experiment on one store: open it for what \
                 happened, the figures, and the command that repeats it."
            }
            (parts(report))
            @if report.part == Part::Swapped {
                p.warning {
                    "This is a control run: the locks have changed parts, so that each verdict must \
                     be another one. Nothing here is an answer."
                }
            }
        }
    }
}

fn parts(report: &Report) -> Markup {
    html! {
        nav aria-label="Parts of this page" {
            a href="#matrix" { "Verdicts" }
            a href="#words" { "Words" }
            a href="#advice" { "Which store to take" }
            a href="#plots" { "Plots" }
            a href="#differs" { "What differs" }
            a href="#missing" { "What is missing" }
            a href="#evidence" { "All evidence" }
            a href="#run" { "The run" }
            span.when {
                (report.day()) ", " (pace(report)) ", seed " (report.seed) ", "
                (report.machine.cores) " cores"
            }
        }
    }
}

/// The signs with their words and counts.
pub(super) fn legend(report: &Report) -> Markup {
    html! {
        ul.legend aria-label="Verdicts, and how many there are" {
            @for (verdict, count) in report.counts() {
                li {
                    span class={ "v " (class(verdict)) } { (chip(verdict)) }
                    b { (count) } " " (meaning(verdict))
                }
            }
        }
    }
}

pub(super) fn chip(verdict: Verdict) -> Markup {
    html! { i aria-hidden="true" { (verdict.sign()) } span { (super::words::short(verdict)) } }
}

pub(super) fn facts(report: &Report) -> Markup {
    html! {
        h2 #run { "The run" }
        dl.facts {
            (origin(&report.machine, &report.versions, &report.started, report.took))
            dt { "Pace" }
            dd { (pace(report)) }
            dt { "Seed" }
            dd { (report.seed) }
            dt { "Command" }
            dd { (command(&report.command)) }
        }
    }
}

fn pace(report: &Report) -> &'static str {
    match report.pace {
        Pace::Quick => "a quick run",
        Pace::Full => "a full run",
    }
}
