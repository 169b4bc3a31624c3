//! Tables of texts, for the page and for Markdown.

use lock_report::markdown;
use maud::{Markup, html};

use crate::{Role, Row, Section};

use super::words::{count, dash, ratio, role, time};

/// A heading with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heading: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// The names of the heading stand between commas.
    pub(super) fn new(heading: &'static str, rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self { heading: heading.split(", ").collect(), rows: rows.collect() }
    }

    pub(crate) fn markdown(&self) -> String {
        let plain = |row: &Vec<String>| row.iter().map(|text| markdown::plain(text)).collect();
        markdown::table(&self.heading, self.rows.iter().map(plain))
    }

    /// The table in a box that scrolls.
    pub(super) fn html(&self, label: &str) -> Markup {
        html! {
            div.scroll tabindex="0" role="group" aria-label=(label) {
                table.plain {
                    thead { tr { @for name in &self.heading { th scope="col" { (name) } } } }
                    tbody { @for row in &self.rows { (line(row)) } }
                }
            }
        }
    }
}

fn line(row: &[String]) -> Markup {
    html! {
        tr {
            @for (column, text) in row.iter().enumerate() {
                @if column == 0 { th scope="row" { (text) } } @else { td { (text) } }
            }
        }
    }
}

/// All figures of a preset.
pub(super) fn figures(section: &Section) -> Table {
    if section.is_outage() {
        return outage(section);
    }
    let heading = "store, contender, what it is, acquisitions/s, x distlock, acquire 50 %, 99 %, \
        99.9 %, slowest, hand-over 50 %, 99 %, least and most turns, out of order, p99 / p50, \
        requests, wakes, connections, watches, client CPU, server CPU";
    Table::new(heading, section.rows.iter().map(all_of))
}

fn all_of(row: &Row) -> Vec<String> {
    let figures = &row.figures;
    let (acquire, handover) = (&figures.acquire, figures.handover.as_ref());
    let mut cells = short_of(row);
    cells.extend([
        time(Some(&acquire.p50)),
        time(Some(&acquire.p99)),
        time(Some(&acquire.p999)),
        time(Some(&acquire.max)),
        time(handover.map(|times| &times.p50)),
        time(handover.map(|times| &times.p99)),
    ]);
    cells.extend(evenness(row));
    cells.extend([
        count(figures.fairness.as_ref().map(|fairness| &fairness.spread)),
        count(figures.requests.as_ref()),
        count(figures.wakes.as_ref()),
        count(figures.connections.as_ref()),
        count(figures.watches.as_ref()),
        time(Some(&figures.client_cpu)),
        time(figures.server_cpu.as_ref()),
    ]);
    cells
}

/// Store, contender, role, rate and ratio.
fn short_of(row: &Row) -> Vec<String> {
    let ratio = if row.role == Role::Distlock { "1".into() } else { ratio(row.ratio) };
    let (rate, role) = (count(Some(&row.figures.rate)), role(row.role).to_owned());
    vec![row.store.clone(), row.contender.clone(), role, rate, ratio]
}

/// Least and most turns of a worker, and grants out of order.
pub(super) fn evenness(row: &Row) -> [String; 2] {
    let Some(fairness) = &row.figures.fairness else { return [dash(), dash()] };
    [
        format!("{} to {}", count(Some(&fairness.least)), count(Some(&fairness.most))),
        format!("{} %", count(Some(&fairness.out_of_order))),
    ]
}

/// What a page of `docs/` shows of a preset.
pub(crate) fn summary(section: &Section) -> Table {
    if section.is_outage() {
        return outage(section);
    }
    let heading = "store, contender, what it is, acquisitions/s, x distlock, acquire 50 %, 99 %, \
        hand-over 50 %, requests, client CPU";
    let of = |row: &Row| {
        let (figures, mut cells) = (&row.figures, short_of(row));
        cells.extend([
            time(Some(&figures.acquire.p50)),
            time(Some(&figures.acquire.p99)),
            time(figures.handover.as_ref().map(|times| &times.p50)),
            count(figures.requests.as_ref()),
            time(Some(&figures.client_cpu)),
        ]);
        cells
    };
    Table::new(heading, section.rows.iter().map(of))
}

/// What a killed holder or leader costs.
fn outage(section: &Section) -> Table {
    let of = |row: &Row| {
        let until = row.figures.handover.as_ref().map(|times| &times.p50);
        vec![row.store.clone(), row.contender.clone(), time(until)]
    };
    Table::new("store, contender, time until the next grant", section.rows.iter().map(of))
}
