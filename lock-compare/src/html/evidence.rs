//! All evidence: the texts of each claim, and the events on each store.

use lock_report::command;
use maud::{Markup, html};

use crate::{Cell, ClaimText, Drawing, Figure, Nature, Plot, Report, Row, Side, Timeline, Verdict};

use super::{
    Detail, Sides, matrix,
    plots::{self, figure},
    words::{class, number},
};

pub(super) fn claims(report: &Report, detail: Detail) -> Markup {
    html! {
        p { "Per claim: what is said, what was done, and what happened on each store." }
        div.timeline-key { (plots::key()) }
        @for row in &report.rows { (claim(row, detail)) }
    }
}

fn claim(row: &Row, detail: Detail) -> Markup {
    let number = row.claim.number;
    html! {
        details.claim #{ "C" (number) } {
            summary {
                h3 { b { "C" (number) } " " (row.claim.title) }
                span.signs aria-hidden="true" {
                    @for cell in &row.cells {
                        i class={ "v " (class(cell.outcome.verdict)) } {
                            (cell.outcome.verdict.sign())
                        }
                    }
                }
            }
            (texts(&row.claim))
            @for cell in &row.cells { (article(&row.claim, cell, detail)) }
        }
    }
}

fn texts(claim: &ClaimText) -> Markup {
    html! {
        dl.texts {
            dt { "Claimed" } dd { (claim.claimed) }
            dt { "Done" } dd { (claim.done) }
            dt { "Measured" } dd { (claim.measured) }
            dt { "Threshold" } dd { (claim.threshold) }
        }
    }
}

fn article(claim: &ClaimText, cell: &Cell, detail: Detail) -> Markup {
    let (outcome, id) = (&cell.outcome, matrix::id(claim.number, cell.store));
    let title = format!("C{} {}, {}", claim.number, claim.title, cell.store);
    html! {
        article.cell #(id) data-title=(title) tabindex="-1" {
            h4 { (cell.store.name()) (badge(outcome.verdict)) }
            p.sentence { (outcome.sentence) }
            (sides(&outcome.sides, &id, detail))
            (figures(&outcome.figures))
            @for (number, plot) in outcome.plots.iter().enumerate() {
                @if !is_drawn_with_a_side(plot, cell) {
                    (figure(plot, &format!("{id}-p{number}"), detail))
                }
            }
            @if outcome.verdict.is_answer() {
                p.repeat { "Repeat it: " (command(&cell.command)) " (" (number(cell.took)) " s)" }
            }
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    html! {
        span class={ "v " (class(verdict)) } {
            i aria-hidden="true" { (verdict.sign()) }
            span { (verdict.words()) }
        }
    }
}

fn sides(sides: &[Side], id: &str, detail: Detail) -> Markup {
    html! {
        @if !sides.is_empty() {
            div.sides {
                @for (number, one) in sides.iter().enumerate() {
                    (side(one, &format!("{id}-s{number}"), number, detail))
                }
            }
        }
    }
}

/// Whether the plot is the timeline of a side, which is drawn with that side.
fn is_drawn_with_a_side(plot: &Plot, cell: &Cell) -> bool {
    let Drawing::Timeline(timeline) = &plot.drawing else { return false };
    let same = |side: &Side| side.timeline.as_ref() == Some(timeline);
    cell.outcome.sides.iter().any(same)
}

fn side(side: &Side, id: &str, place: usize, detail: Detail) -> Markup {
    let ours = side.nature == Nature::Distlock;
    html! {
        section.side.ours[ours] {
            h5 {
                (side.lock)
                @if !ours { small { (side.nature.words()) } }
                span.well.ill[!side.well] {
                    (if side.well { "✓ did its work" } else { "✗ did not do its work" })
                }
            }
            p { (side.happened) }
            @if !side.evidence.is_empty() { ul { @for line in &side.evidence { li { (line) } } } }
            @if !side.violations.is_empty() { (violations(side)) }
            @if let Some(timeline) = &side.timeline {
                @if is_drawn(side, place, detail) {
                    (drawn(side, timeline, id, detail))
                } @else {
                    p.note { "Its timeline is left out, to keep this page small." }
                }
            }
            @if let Some(trace) = &side.trace { p.note { "Trace: " code { (trace) } } }
        }
    }
}

fn drawn(side: &Side, timeline: &Timeline, id: &str, detail: Detail) -> Markup {
    let title = format!("What the clients of {} did", side.lock);
    let drawing = Drawing::Timeline(timeline.clone());
    figure(&Plot { title, topic: None, drawing }, id, detail)
}

fn is_drawn(side: &Side, place: usize, detail: Detail) -> bool {
    match detail.sides {
        Sides::All => true,
        Sides::Main => place == 0 || side.nature == Nature::Distlock,
        Sides::None => false,
    }
}

fn violations(side: &Side) -> Markup {
    let count = side.violations.len();
    html! {
        details.data {
            summary { "What the checker of histories finds (" (count) ")" }
            @for violation in side.violations.iter().take(5) { pre { (violation) } }
            @if count > 5 { p.note { (count - 5) " more." } }
        }
    }
}

fn figures(figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            div.scroll tabindex="0" role="group" aria-label="Figures" {
                table.plain {
                    thead {
                        tr {
                            th scope="col" { "figure" }
                            th scope="col" { "value" }
                            th scope="col" { "interval of 95 %" }
                        }
                    }
                    tbody { @for one in figures { (line(one)) } }
                }
            }
        }
    }
}

fn line(figure: &Figure) -> Markup {
    html! {
        tr {
            th scope="row" { (figure.name) }
            td { (number(figure.value)) " " (figure.unit) }
            td {
                @if let Some((from, until)) = figure.interval {
                    (number(from)) " to " (number(until))
                }
            }
        }
    }
}
