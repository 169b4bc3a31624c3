//! The questions that a report answers at its top.

use lock_report::number;
use maud::{Markup, html};

use super::table::Table;
use crate::{
    Report, Role, Row, Section,
    columns::{
        CLIENT_CPU, CONNECTED, CONTENDER, Column, HANDOVER, HANDOVER99, ORDER, P50, RATE, RATIO,
        REQUESTS, ROLE, SLOWEST, STORE, TURNS, WAKES,
    },
    contender::MOST_APART,
    words::{count, dash, median, micros, ratio, tasks},
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

pub(crate) fn answers(report: &Report) -> [Answer; 4] {
    [fastest(report), fleet(report), fairness(report), own(report)]
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

/// The mean time from a grant to the next one in microseconds: of locks that are released at once,
/// the mean hand-over.
fn mean(row: &Row) -> f64 {
    median(&row.figures.rate).map_or(f64::INFINITY, |rate| 1e6 / rate)
}

fn fastest(report: &Report) -> Answer {
    let mut rows = waiting(report, "hot-fleet");
    rows.retain(|row| row.figures.handover.is_some());
    rows.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    let told = match rows.iter().position(|row| row.role == Role::Distlock) {
        Some(place) => ranked(rows[place], &rows[..place]),
        None => "This run does not say it: it has no hand-over of the preset hot-fleet.".into(),
    };
    let mean: Column = ("mean (1 / rate)", |row| micros(mean(row)));
    let columns = [STORE, CONTENDER, ROLE, RATE, mean, HANDOVER, HANDOVER99, TURNS, ORDER];
    let table = Table::of(&columns, rows);
    Answer { question: "Which store hands over fastest between processes?", told, table }
}

/// The first store with distlock, after what is faster than that.
fn ranked(ours: &Row, faster: &[&Row]) -> String {
    let (store, rate) = (&ours.store, count(Some(&ours.figures.rate)));
    let mut told = format!(
        "With distlock, {store}: {rate} acquisitions/s, so that a hand-over takes {} in the mean.",
        micros(mean(ours)),
    );
    if !faster.is_empty() {
        let named = |row: &&Row| format!("{} ({})", row.contender, row.store);
        let names: Vec<_> = faster.iter().map(named).collect();
        let names = names.join(", ");
        told += &format!(" Faster: {names}; see their turns and their order.");
    }
    told += " A lock is released at once, so the mean is 1 / rate. Half of the hand-overs may take \
        far less than the mean: on etcd, most stay within a process, and the others cross to \
        another process, which takes longer. The mean also counts a worker that takes the lock \
        again itself; 50 % and 99 % do not.";
    told
}

fn fleet(report: &Report) -> Answer {
    let swept = swept(report);
    let growth = if swept.is_empty() { "" } else { ", which the sweep over workers checks" };
    let told = match section(report, "herd") {
        Some(section) => format!(
            "Here {} ask at once for one name, and each releases as soon as it holds; times \
             count from that moment. The tasks of a process share a client; processes have one \
             each. Usual ways that need a process or a connection for each worker are left out \
             above {MOST_APART} workers. The requests of {FLEET} are extrapolated: those of a \
             waiter times {FLEET}{growth}. So they are those of {FLEET} tasks of one process; \
             {FLEET} processes have a connection and renewals each.{swept}",
            tasks(&section.workload),
        ),
        None => format!("This run does not say it: it has no preset herd.{swept}"),
    };
    let columns: [Column; 10] = [
        STORE,
        CONTENDER,
        ROLE,
        ("until half have had it", P50.1),
        ("until the last has", SLOWEST.1),
        ("connections of all", CONNECTED.1),
        ("requests per waiter", REQUESTS.1),
        ("wakes per waiter", WAKES.1),
        ("client CPU per waiter", CLIENT_CPU.1),
        ("requests of 300 (extrapolated)", |row| {
            let requests = row.figures.requests.as_ref().and_then(median);
            requests.map_or_else(dash, |requests| number(requests * FLEET))
        }),
    ];
    let table = Table::of(&columns, waiting(report, "herd"));
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
    let is_fleet = fleet.iter().any(|row| row.role == Role::Unordered);
    let rows = if is_fleet { fleet } else { on_redis("hot-name") };
    let find = |role: Role| rows.iter().find(|row| row.role == role);
    let told = match (find(Role::Distlock), find(Role::Unordered)) {
        (Some(ours), Some(other)) => {
            let hot = on_redis("hot-name").into_iter();
            let hot = hot.filter(|row| is_fleet && row.role == other.role).map(|row| {
                let times = ratio(row.ratio);
                format!(", and {times} times where the tasks of one process wait (hot-name)")
            });
            format!(
                "distlock serves workers in the order of their requests: {} acquisitions/s, {}. \
                 With mode=simple it has no queue, and waiters poll: {} acquisitions/s, {}. That \
                 is {} times the rate with an order{}.",
                count(Some(&ours.figures.rate)),
                order(ours),
                count(Some(&other.figures.rate)),
                order(other),
                ratio(other.ratio),
                hot.collect::<String>(),
            )
        }
        _ => "This run does not say it: on Redis, it lacks distlock or mode=simple.".into(),
    };
    let columns = [STORE, CONTENDER, ROLE, RATE, RATIO, HANDOVER, TURNS, ORDER, REQUESTS];
    let table = Table::of(&columns, rows);
    Answer { question: "What does fairness cost on Redis?", told, table }
}

/// What distlock costs where no request is sent, in words. `None` without both sides of it.
pub(crate) fn own_cost(report: &Report) -> Option<String> {
    let rows = in_memory(report);
    let nanos = |row: &&Row| 1000.0 * mean(row);
    let ours = nanos(rows.iter().find(|row| row.role == Role::Distlock)?);
    let bare = rows.iter().find(|row| row.role == Role::Usual)?;
    let least = nanos(bare);
    Some(format!(
        "In memory no request is sent: an acquire and its release take {} ns with distlock, and {} \
         ns with {}, both with four looks at the clock. The other {} ns are lock-core's and \
         lock-memory's own work.",
        number(ours),
        number(least),
        bare.contender,
        number(ours - least),
    ))
}

fn in_memory(report: &Report) -> Vec<&Row> {
    let mut rows = waiting(report, "uncontended");
    rows.retain(|row| row.store == "memory");
    rows
}

fn own(report: &Report) -> Answer {
    let told = own_cost(report).unwrap_or_else(|| {
        "This run does not say it: uncontended in memory, it lacks distlock or a usual way.".into()
    });
    let nanos: Column = ("ns for both", |row| number(1000.0 * mean(row)));
    let columns = [STORE, CONTENDER, ROLE, nanos, CLIENT_CPU];
    let table = Table::of(&columns, in_memory(report));
    Answer { question: "What do an acquire and a release cost without a store?", told, table }
}

fn order(row: &Row) -> String {
    let (turns, out_of_order) = ((TURNS.1)(row), (ORDER.1)(row));
    format!("{turns} of an even share per worker, {out_of_order} of grants out of order")
}
