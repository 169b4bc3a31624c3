//! The questions that a report answers at its top.

use lock_report::number;
use maud::{Markup, html};

use crate::{Report, Role, Row, Section};

use super::{
    table::{Table, evenness},
    words::{count, dash, median, micros, ratio, role, time},
};

/// The size of the fleet that is asked about.
const FLEET: f64 = 300.0;

/// A question with its answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) question: &'static str,
    /// The answer in words.
    pub(crate) told: String,
    /// The figures that it rests on.
    pub(crate) table: Table,
}

pub(crate) fn answers(report: &Report) -> [Answer; 3] {
    [fastest(report), fleet(report), fairness(report)]
}

pub(super) fn cards(report: &Report) -> Markup {
    html! {
        @for answer in answers(report) {
            h3 { (answer.question) }
            p { (answer.told) }
            @if !answer.table.rows.is_empty() { (answer.table.html(answer.question)) }
        }
    }
}

fn section<'a>(report: &'a Report, preset: &str) -> Option<&'a Section> {
    report.sections.iter().find(|section| section.preset == preset)
}

/// The rows of a preset that can wait, so that they can be compared.
fn waiting<'a>(report: &'a Report, preset: &str) -> Vec<&'a Row> {
    let rows = section(report, preset).map_or(&[][..], |section| section.rows.as_slice());
    rows.iter().filter(|row| row.role.waits()).collect()
}

fn named(row: &Row) -> Vec<String> {
    vec![row.store.clone(), row.contender.clone(), role(row.role).into()]
}

fn handover(row: &Row) -> Option<f64> {
    median(&row.figures.handover.as_ref()?.p50)
}

fn fastest(report: &Report) -> Answer {
    let mut rows = waiting(report, "hot-fleet");
    rows.retain(|row| handover(row).is_some());
    let of = |row: &Row| handover(row).unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let line = |row: &&Row| {
        let times = row.figures.handover.as_ref();
        let mut cells = named(row);
        cells.extend([time(times.map(|times| &times.p50)), time(times.map(|times| &times.p99))]);
        cells.push(count(Some(&row.figures.rate)));
        cells.extend(evenness(row));
        cells
    };
    let ours = rows.iter().find(|row| row.role == Role::Distlock);
    let told = match (rows.first(), ours) {
        (Some(first), Some(ours)) => {
            let (p50, store) = (micros(of(ours)), &ours.store);
            let mut told =
                format!("With distlock, {store}: half of its hand-overs take at most {p50}.");
            if first.role != Role::Distlock {
                let (name, store, p50) = (&first.contender, &first.store, micros(of(first)));
                told += &format!(
                    " Faster is {name} on {store}, with {p50}; see its least turns and its order."
                );
            }
            told
        }
        _ => "This run does not say it: it has no hand-over of the preset hot-fleet.".into(),
    };
    let heading = "store, contender, what it is, hand-over 50 %, 99 %, acquisitions/s, least and \
        most turns, out of order, p99 / p50";
    let table = Table::new(heading, rows.iter().map(line));
    Answer { question: "Which store hands over fastest between processes?", told, table }
}

fn fleet(report: &Report) -> Answer {
    let rows = waiting(report, "herd");
    let line = |row: &&Row| {
        let figures = &row.figures;
        let requests = figures.requests.as_ref();
        let of_all = requests.and_then(median).map(|requests| number(requests * FLEET));
        let mut cells = named(row);
        cells.extend([
            time(Some(&figures.acquire.p50)),
            time(Some(&figures.acquire.max)),
            count(requests),
            of_all.unwrap_or_else(dash),
            count(figures.wakes.as_ref()),
            count(figures.connections.as_ref()),
            time(Some(&figures.client_cpu)),
        ]);
        cells
    };
    let mut told = match section(report, "herd") {
        Some(section) => format!(
            "Here {} waiters ask at once, and each releases as soon as it holds. Figures are per \
             waiter; the requests of all {FLEET} are those times {FLEET}, where the cost per \
             waiter does not grow (the sweep over workers says whether it does).",
            section.workload.workers,
        ),
        None => "This run does not say it: it has no preset herd.".into(),
    };
    told += &swept(report);
    let heading = "store, contender, what it is, half have had it after, the last after, \
        requests, requests of 300, wakes, connections, client CPU";
    let table = Table::new(heading, rows.iter().map(line));
    Answer { question: "What does a fleet of 300 waiters cost?", told, table }
}

/// The points of sweeps over workers that are nearest to the fleet's size.
fn swept(report: &Report) -> String {
    let sweeps = report.sweeps.iter().filter(|sweep| sweep.over == "workers");
    let told = sweeps.filter_map(|sweep| {
        let away = |value: f64| (value / FLEET).ln().abs();
        let points = sweep.points.iter().filter(|point| point.value > 0.0);
        let near = points.min_by(|a, b| away(a.value).total_cmp(&away(b.value)))?;
        let idle = near.idle_requests.map(|idle| format!(", {} requests/s at rest", number(idle)));
        Some(format!(
            " {} on {} with {} workers: {} acquisitions/s{}.",
            sweep.contender,
            sweep.store,
            number(near.value),
            number(near.rate),
            idle.unwrap_or_default(),
        ))
    });
    told.collect()
}

fn fairness(report: &Report) -> Answer {
    let on_redis = |preset: &str| {
        let mut rows = waiting(report, preset);
        rows.retain(|row| row.store.starts_with("redis"));
        rows
    };
    let fleet = on_redis("hot-fleet");
    let rows = if fleet.len() > 1 { fleet } else { on_redis("hot-name") };
    let line = |row: &&Row| {
        let times = row.figures.handover.as_ref();
        let mut cells = named(row);
        let own = row.role == Role::Distlock;
        let rates = [count(Some(&row.figures.rate)), ratio(row.ratio.filter(|_| !own))];
        cells.extend(rates);
        cells.push(time(times.map(|times| &times.p50)));
        cells.extend(evenness(row));
        cells.push(count(row.figures.requests.as_ref()));
        cells
    };
    let ours = rows.iter().find(|row| row.role == Role::Distlock);
    let other = rows.iter().find(|row| row.role != Role::Distlock);
    let told = match (ours, other) {
        (Some(ours), Some(other)) => format!(
            "distlock serves workers in the order in which they asked: {} acquisitions/s, {}. {} \
             keeps no order: {} acquisitions/s, {}; that is {} times distlock's rate.",
            count(Some(&ours.figures.rate)),
            order(ours),
            other.contender,
            count(Some(&other.figures.rate)),
            order(other),
            ratio(other.ratio),
        ),
        _ => "This run does not say it: it has no usual way beside distlock on Redis.".into(),
    };
    let heading = "store, contender, what it is, acquisitions/s, x distlock, hand-over 50 %, \
        least and most turns, out of order, p99 / p50, requests";
    let table = Table::new(heading, rows.iter().map(line));
    Answer { question: "What does fairness cost on Redis?", told, table }
}

fn order(row: &Row) -> String {
    let [turns, out_of_order, _] = evenness(row);
    format!("{turns} of an even share per worker, {out_of_order} of grants out of order")
}
