//! The verdicts: a row per claim, a column per store.

use maud::{Markup, html};

use crate::{Cell, Report, Row, Store, verdict::sign_of_distlock};

use super::{
    head,
    words::{brief, class, short},
};

/// Above this number of rows there are two blocks, side by side if there is room.
const BLOCK: usize = 12;

pub(super) fn section(report: &Report) -> Markup {
    let blocks = if report.rows.len() > BLOCK { 2 } else { 1 };
    let size = report.rows.len().div_ceil(blocks).max(1);
    html! {
        section #matrix aria-labelledby="matrix-title" {
            h2.hidden #matrix-title { "Verdicts" }
            (head::legend(report))
            p.note {
                "Two marks in a cell: the claim about the articles' lock, and distlock in the same case, "
                (ours_mark(true)) " it does its work, " (ours_mark(false)) " it does not."
            }
            div.blocks.double[blocks == 2] {
                @for rows in report.rows.chunks(size) { (block(report, rows)) }
            }
            p.keys { "Arrow keys move, Enter opens, Escape closes." }
        }
    }
}

fn block(report: &Report, rows: &[Row]) -> Markup {
    let ends = |row: Option<&Row>| row.map_or(0, |row| row.claim.number);
    let (first, last) = (ends(rows.first()), ends(rows.last()));
    html! {
        table.matrix role="table" {
            caption.hidden { "Verdicts of the claims C" (first) " to C" (last) " by store" }
            thead role="rowgroup" {
                tr role="row" {
                    th.claim scope="col" role="columnheader" { "Claim" }
                    @for store in &report.stores {
                        th scope="col" role="columnheader" { (store.name()) }
                    }
                }
            }
            tbody role="rowgroup" { @for row in rows { (line(report, row)) } }
        }
    }
}

fn line(report: &Report, row: &Row) -> Markup {
    html! {
        tr role="row" {
            th.claim scope="row" role="rowheader" {
                a href={ "#C" (row.claim.number) } title=(row.claim.claimed) {
                    b { "C" (row.claim.number) } " " span { (row.claim.title) }
                }
            }
            @for store in report.stores.iter().copied() {
                td role="cell" {
                    @if let Some(cell) = row.cell(store) { (link(row.claim.number, cell)) }
                }
            }
        }
    }
}

fn link(number: u8, cell: &Cell) -> Markup {
    let verdict = cell.outcome.verdict;
    let name = format!("C{number} on {}: {}", cell.store, short(verdict));
    let ours = cell.outcome.distlock();
    let told = match ours {
        Some(true) => "; distlock does its work",
        Some(false) => "; distlock does not do its work",
        None => "",
    };
    html! {
        a href={ "#" (id(number, cell.store)) } aria-label={ (name) (told) }
            title=(cell.outcome.sentence) {
            small aria-hidden="true" { (brief(cell.store)) }
            div.marks aria-hidden="true" {
                b class={ "v " (class(verdict)) } { (head::chip(verdict)) }
                @if let Some(well) = ours { (ours_mark(well)) }
            }
        }
    }
}

fn ours_mark(well: bool) -> Markup {
    html! { b.v.ours.holds[well].breaks[!well] { i { (sign_of_distlock(well)) } } }
}

/// The id of a cell's evidence: `C7-redis`.
pub(crate) fn id(number: u8, store: Store) -> String {
    format!("C{number}-{}", store.scheme())
}
