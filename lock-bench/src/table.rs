//! The report as text of at most 80 columns.

use comfy_table::{CellAlignment, ColumnConstraint, Table, Width, presets};
use lock_report::number;

use crate::{
    Report, Row, Section, Sweep,
    columns::{
        CLIENT_CPU, Column, HANDOVER, NAMED, ORDER, P50, P99, P999, RATE, RATIO, REQUESTS,
        SERVER_CPU, SLOWEST, TURNS, WAKES,
    },
    html::own_cost,
    words::{dash, load, run},
};

const WIDTH: u16 = 80;
/// Blanks between two columns.
const GAP: u16 = 1;

/// A heading, the greatest width, and what it shows. All columns and gaps together have 80.
type Shown = (&'static str, u16, Column);

static SPEED: [Shown; 7] = [
    ("", 20, NAMED),
    ("per s", 7, RATE),
    ("x distlock", 19, RATIO),
    ("p50", 7, P50),
    ("p99", 7, P99),
    ("p99.9", 7, P999),
    ("hand-\nover", 7, HANDOVER),
];
static COSTS: [Shown; 8] = [
    ("", 20, NAMED),
    ("max", 7, SLOWEST),
    ("re-\nquests", 6, REQUESTS),
    ("wakes", 6, WAKES),
    ("client\nCPU", 7, CLIENT_CPU),
    ("server\nCPU", 7, SERVER_CPU),
    ("turns", 10, TURNS),
    ("out of\norder", 8, ORDER),
];
/// Of a killed holder or leader.
static OUTAGE: [Shown; 2] = [("", 40, NAMED), ("next\ngrant", 7, HANDOVER)];
const GROWTH: [(&str, u16); 4] =
    [("", 12), ("per s", 7), ("KiB per\nheld lock", 9), ("idle re-\nquests/s", 9)];

/// What the columns of all sections mean.
const LEGEND: &str = "Each figure is the median of the rounds. `per s` counts acquisitions, and \
    `x distlock` is the median of the rounds' ratios to distlock, with their interval. \
    p50 to max are times to acquire, `hand-over` is the p50 from a release to the next grant of a \
    worker that waited. Requests, wakes and processor time are per acquisition; `turns` are the \
    least and the most of a worker, 1 for an even share; `out of order` counts grants that were \
    not in the order in which workers asked; `next grant` counts from the kill. – was not told.";

/// The report as text: per section its load and two tables, then how it was measured.
pub fn table(report: &Report) -> String {
    let mut parts: Vec<_> = report.sections.iter().map(section).collect();
    parts.extend(own_cost(report).map(|told| prose(&told)));
    parts.extend(report.sweeps.iter().map(sweep));
    parts.push(prose(LEGEND));
    let missing = report.missing.iter().map(|what| format!("Missing: {what}"));
    let lines = report.method.iter().cloned().chain(missing).chain(run(report));
    parts.push(lines.map(|line| prose(&line)).collect::<Vec<_>>().join("\n"));
    parts.join("\n\n") + "\n"
}

fn section(section: &Section) -> String {
    let heading = prose(&format!("{}: {}", section.preset, section.models));
    let mut parts = vec![heading, prose(&format!("({})", load(section)))];
    let tables = match section.is_outage() {
        true => vec![&OUTAGE[..]],
        false => vec![&SPEED[..], &COSTS[..]],
    };
    for columns in tables {
        let widths: Vec<_> = columns.iter().map(|(heading, width, _)| (*heading, *width)).collect();
        parts.extend([String::new(), grid(&widths, by_store(&section.rows, columns))]);
    }
    parts.join("\n")
}

fn sweep(sweep: &Sweep) -> String {
    let growth = sweep.exponent.map_or_else(String::new, |exponent| {
        format!("; the time per acquisition grows as {} to the {exponent:.2}", sweep.over)
    });
    let heading = format!("{} on {} over {}{growth}", sweep.contender, sweep.store, sweep.over);
    let rows = sweep.points.iter().map(|point| {
        let told = |value: Option<f64>| value.map_or_else(dash, number);
        let memory = told(point.memory.map(|bytes| bytes / 1024.0));
        vec![number(point.value), number(point.rate), memory, told(point.idle_requests)]
    });
    [prose(&heading), String::new(), grid(&GROWTH, rows)].join("\n")
}

/// The rows, with a line above those of each store.
fn by_store(rows: &[Row], columns: &[Shown]) -> Vec<Vec<String>> {
    let (mut lines, mut last) = (Vec::new(), None);
    for row in rows {
        if last.replace(&row.store) != Some(&row.store) {
            lines.push(vec![format!("on {}:", row.store)]);
        }
        lines.push(columns.iter().map(|(_, _, (_, cell))| cell(row)).collect());
    }
    lines
}

/// Columns without ruled lines. Longer cells have several lines. All but the first are numbers.
fn grid(columns: &[(&str, u16)], rows: impl IntoIterator<Item = Vec<String>>) -> String {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Fairness, Figures, Preset, Quantiles, Ratio, Role, Rounds, SweepPoint};

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
        Row { ratio, ..Row::new(store, contender, role, figures) }
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
        assert!(
            shown.starts_with("hot-name: Tasks of one process.\n(16 tasks in one process, "),
            "{shown}"
        );
        let speed: Vec<_> = shown.lines().skip_while(|line| *line != "on redis:").take(5).collect();
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells(speed[1])[..3], ["distlock", "123", "1"], "{shown}");
        assert!(speed[2].starts_with("redis-py"), "{shown}");
        for part in ["on etcd:", "(imitation)", "0 to", "12.3", "Missing: Tasks", "to the 0.98"] {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
    }
}
