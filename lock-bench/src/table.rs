//! The report as text of at most 80 columns.

use comfy_table::{CellAlignment, ColumnConstraint, Table, Width, presets};
use lock_core::duration;

use crate::{
    Ratio, Report, Role, Rounds, Row, Section, Sweep, Workload, html::own_cost, number::shown,
};

const WIDTH: u16 = 80;
/// Blanks between two columns.
const GAP: u16 = 2;

/// A heading and the greatest width. All columns together have 80.
type Column = (&'static str, u16);

const SPEED: [Column; 7] = [
    ("", 20),
    ("per s", 6),
    ("ratio (low-high)", 17),
    ("p50\nms", 6),
    ("p99\nms", 6),
    ("p99.9\nms", 6),
    ("hand-\nover ms", 7),
];
const COSTS: [Column; 8] = [
    ("", 20),
    ("max\nms", 6),
    ("re-\nquests", 6),
    ("wakes", 5),
    ("client\nCPU µs", 6),
    ("server\nCPU µs", 6),
    ("share\nof turns", 10),
    ("over-\ntook %", 6),
];
const GROWTH: [Column; 4] =
    [("", 12), ("per s", 6), ("KiB per\nheld lock", 9), ("idle re-\nquests/s", 9)];
/// Of a killed holder or leader.
const OUTAGE: [Column; 2] = [("", 40), ("next\ngrant ms", 8)];

/// What the columns of all sections mean.
const LEGEND: &str = "Each figure is the median of the rounds. `per s` counts acquisitions, and \
    `ratio` is the median of the rounds' ratios to distlock, with the least and the greatest. p50 \
    to max are times to acquire, `hand-over` is the p50 from a release to the next grant of a \
    worker that waited. Requests, wakes and processor time are per acquisition; `share of turns` \
    is the least and the most of a worker, 1 for an even share; `overtook` counts grants that were \
    out of the order in which workers asked; `next grant` counts from the kill. `-` was not told.";

/// The report as text: per section its load and two tables, then how it was measured.
pub fn table(report: &Report) -> String {
    let mut parts: Vec<_> = report.sections.iter().map(section).collect();
    parts.extend(own_cost(report).map(|told| prose(&told)));
    parts.extend(report.sweeps.iter().map(sweep));
    parts.push(prose(LEGEND));
    parts.push(circumstances(report));
    parts.join("\n\n") + "\n"
}

fn section(section: &Section) -> String {
    let rows = &section.rows;
    let grids = if section.is_outage() {
        vec![grid(&OUTAGE, by_store(rows, outage))]
    } else {
        vec![grid(&SPEED, by_store(rows, speed)), grid(&COSTS, by_store(rows, costs))]
    };
    let heading = prose(&format!("{}: {}", section.preset, section.models));
    let mut parts = vec![heading, prose(&load(&section.workload))];
    for lines in grids {
        parts.extend([String::new(), lines]);
    }
    parts.join("\n")
}

fn load(load: &Workload) -> String {
    let Workload { workers, names, processes, kind, .. } = load;
    let pace = match load.rate {
        Some(rate) => format!("open loop of {rate} starts per second"),
        None if load.herd => "all ask at once".into(),
        None => "closed loop".into(),
    };
    let ttl = load.ttl.map_or_else(String::new, |ttl| format!(", TTL {}", duration::shown(ttl)));
    let hold = duration::shown(load.hold);
    format!(
        "(workers {workers}, names {names}, processes {processes}, {kind}, held for {hold}{ttl}, \
         {pace})"
    )
}

fn speed(row: &Row) -> Vec<String> {
    let figures = &row.figures;
    let ratio = row.ratio.map_or_else(String::new, |Ratio { median, low, high }| {
        format!("{} ({}-{})", shown(median), shown(low), shown(high))
    });
    vec![
        contender(row),
        median(&figures.rate),
        ratio,
        milliseconds(&figures.acquire.p50),
        milliseconds(&figures.acquire.p99),
        milliseconds(&figures.acquire.p999),
        figures.handover.as_ref().map_or_else(unknown, |times| milliseconds(&times.p50)),
    ]
}

fn costs(row: &Row) -> Vec<String> {
    let figures = &row.figures;
    let told = |rounds: &Option<Rounds>| rounds.as_ref().map_or_else(unknown, median);
    let fairness = figures.fairness.as_ref();
    vec![
        contender(row),
        milliseconds(&figures.acquire.max),
        told(&figures.requests),
        told(&figures.wakes),
        median(&figures.client_cpu),
        told(&figures.server_cpu),
        fairness.map_or_else(unknown, |fairness| {
            format!("{:.2}-{:.2}", middle(&fairness.least), middle(&fairness.most))
        }),
        fairness.map_or_else(unknown, |fairness| median(&fairness.out_of_order)),
    ]
}

fn outage(row: &Row) -> Vec<String> {
    let times = row.figures.handover.as_ref();
    vec![contender(row), times.map_or_else(unknown, |times| milliseconds(&times.p50))]
}

fn contender(row: &Row) -> String {
    let name = &row.contender;
    match row.role {
        Role::Distlock | Role::Unordered | Role::Usual => name.clone(),
        Role::FloorLeast => format!("{name} (floor)"),
        Role::FloorKeys => format!("{name} (floor, same keys)"),
        Role::Imitation => format!("{name} (imitation)"),
    }
}

fn sweep(sweep: &Sweep) -> String {
    let growth = sweep.exponent.map_or_else(String::new, |exponent| {
        format!("; the time per acquisition grows as {} to the {exponent:.2}", sweep.over)
    });
    let heading = format!("{} on {} over {}{growth}", sweep.contender, sweep.store, sweep.over);
    let rows = sweep.points.iter().map(|point| {
        let told = |value: Option<f64>| value.map_or_else(unknown, shown);
        let memory = told(point.memory.map(|bytes| bytes / 1024.0));
        vec![shown(point.value), shown(point.rate), memory, told(point.idle_requests)]
    });
    [prose(&heading), String::new(), grid(&GROWTH, rows)].join("\n")
}

fn circumstances(report: &Report) -> String {
    let machine = &report.machine;
    let versions: Vec<_> =
        report.versions.iter().map(|(what, version)| format!("{what} {version}")).collect();
    let facts = [
        format!(
            "Machine: {}, {} cores, {} GiB, {}",
            machine.processor, machine.cores, machine.memory, machine.system
        ),
        format!("Versions: {}", versions.join(", ")),
    ];
    let missing = report.missing.iter().map(|what| format!("Missing: {what}"));
    let end = format!("It took {:.0} s. To repeat it: {}", report.took, report.command);
    let lines = report.method.iter().cloned().chain(facts).chain(missing).chain([end]);
    lines.map(|line| prose(&line)).collect::<Vec<_>>().join("\n")
}

/// The rows, with a line above those of each store.
fn by_store(rows: &[Row], cells: impl Fn(&Row) -> Vec<String>) -> Vec<Vec<String>> {
    let (mut lines, mut last) = (Vec::new(), None);
    for row in rows {
        if last.replace(&row.store) != Some(&row.store) {
            lines.push(vec![format!("on {}:", row.store)]);
        }
        lines.push(cells(row));
    }
    lines
}

/// Columns without ruled lines. Longer cells have several lines. All but the first are numbers.
fn grid(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|(heading, _)| *heading));
    table.add_rows(rows);
    for (place, (column, (_, width))) in table.column_iter_mut().zip(columns).enumerate() {
        column.set_padding((0, GAP));
        column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(*width)));
        if place > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Text in lines that fit.
fn prose(text: &str) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
        column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(WIDTH)));
    }
    table.trim_fmt()
}

fn milliseconds(rounds: &Rounds) -> String {
    Ratio::of(rounds).map_or_else(unknown, |time| shown(time.median / 1000.0))
}

fn median(rounds: &Rounds) -> String {
    Ratio::of(rounds).map_or_else(unknown, |ratio| shown(ratio.median))
}

fn middle(rounds: &Rounds) -> f64 {
    Ratio::of(rounds).map_or(f64::NAN, |ratio| ratio.median)
}

fn unknown() -> String {
    "-".into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Fairness, Figures, Preset, Quantiles, SweepPoint};

    fn rounds(value: f64) -> Rounds {
        Rounds(vec![value * 0.9, value, value * 1.1])
    }

    fn times(value: f64) -> Quantiles {
        let [p50, p99, p999, max] = [1.0, 10.0, 100.0, 1000.0].map(|part| rounds(value * part));
        Quantiles { p50, p99, p999, max }
    }

    fn row(store: &str, contender: &str, role: Role, value: f64) -> Row {
        let fairness = Fairness {
            least: rounds(0.0),
            most: rounds(12.34),
            out_of_order: rounds(value),
            spread: rounds(value),
        };
        let figures = Figures {
            rate: rounds(value),
            acquire: times(value),
            handover: Some(times(value)),
            fairness: Some(fairness),
            requests: Some(rounds(value)),
            wakes: Some(rounds(value)),
            client_cpu: rounds(value),
            ..Figures::default()
        };
        let ratio = Ratio::of(&rounds(value));
        Row { ratio, ..Row::new(store, contender.into(), role, figures) }
    }

    fn report(rows: Vec<Row>, text: &str) -> Report {
        let section = Section {
            preset: "hot-name".into(),
            models: text.into(),
            workload: Preset::HotName.workload(Duration::from_secs(1)),
            rows,
        };
        let point =
            SweepPoint { value: 1e5, rate: 12.5, memory: Some(2048.0), idle_requests: None };
        let sweep = Sweep {
            over: "held".into(),
            store: "redis".into(),
            contender: text.into(),
            points: vec![point],
            exponent: Some(0.98),
        };
        Report {
            command: text.into(),
            method: vec![text.into()],
            missing: vec![text.into()],
            sections: vec![section],
            sweeps: vec![sweep],
            ..Report::default()
        }
    }

    #[test]
    fn no_line_is_longer_than_80_columns() {
        let long = "aVeryLongWordWithoutAnyBlankThatIsWiderThanEachColumn ".repeat(4);
        for text in [long.trim_end(), "SET NX PX and compare-and-delete as one script", "x"] {
            for value in [0.0, 0.0123, 1.0, 99_999.0, 1e6, 1e9] {
                let row = row("zookeeper", text, Role::FloorKeys, value);
                let shown = table(&report(vec![row], text));
                for line in shown.lines() {
                    assert!(line.chars().count() <= 80, "{line:?} in\n{shown}");
                }
            }
        }
    }

    #[test]
    fn each_store_has_its_rows() {
        let rows = vec![
            row("redis", "distlock", Role::Distlock, 123.4),
            row("redis", "redis-py", Role::Imitation, 1234.0),
            row("etcd", "distlock", Role::Distlock, 123.0),
        ];
        let shown = table(&report(rows, "Tasks of one process."));
        assert!(shown.starts_with("hot-name: Tasks of one process.\n(workers 16, "), "{shown}");
        let speed: Vec<_> = shown.lines().skip_while(|line| *line != "on redis:").take(5).collect();
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells(speed[1])[..3], ["distlock", "123", "123"], "{shown}");
        assert!(speed[2].starts_with("redis-py"), "{shown}");
        for part in ["on etcd:", "(imitation)", "0.00-12.34", "Missing: Tasks", "to the 0.98"] {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
    }
}
