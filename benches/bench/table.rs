//! Results as a table.

use std::{fmt, time::Duration};

use comfy_table::{Cell, CellAlignment, presets::UTF8_FULL_CONDENSED};

use super::{Cpu, Measured, median};

/// A table with a title.
pub struct Table {
    title: &'static str,
    table: comfy_table::Table,
}

/// Empty if the server does not count.
pub fn known(count: Option<f64>) -> String {
    count.map(|count| format!("{count:.2}")).unwrap_or_default()
}

/// One line: its label and its results.
pub struct Row(Vec<String>);

impl Table {
    /// For loads of distlock, beside the bare client's.
    pub fn new(title: &'static str) -> Self {
        let header = [
            "store",
            "tasks",
            "",
            "pairs/s",
            "p50 us",
            "p99 us",
            "cpu us",
            "server cpu us",
            "requests",
            "rate ratio",
            "time ratio",
        ];
        Self::with_header(title, &header)
    }

    /// With other columns.
    pub fn with_header(title: &'static str, header: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(header);
        Self { title, table }
    }

    /// Adds a line.
    pub fn add(&mut self, row: Row) {
        self.add_cells(row.0);
    }

    /// Adds a line of any cells.
    pub fn add_cells(&mut self, cells: Vec<String>) {
        let right = |(i, text): (usize, String)| match i {
            0 | 2 => Cell::new(text),
            _ => Cell::new(text).set_alignment(CellAlignment::Right),
        };
        // Also prints the row at once: a benchmark takes a while.
        println!("{}", cells.join("  "));
        self.table.add_row(cells.into_iter().enumerate().map(right));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}\n{}", self.title, self.table)
    }
}

impl Row {
    /// A load of the bare client.
    pub fn bare(store: &str, tasks: usize, what: &str, loads: &[Measured]) -> Self {
        Self(Self::start(store, tasks, what, loads))
    }

    /// A load of distlock, with its ratios to the bare client's.
    pub fn ours(
        store: &str,
        tasks: usize,
        ours: &[Measured],
        bare: &[Measured],
        requests: Option<f64>,
    ) -> Self {
        let mut cells = Self::start(store, tasks, "distlock", ours);
        cells.push(known(requests));
        let ratio = |of: fn(&Measured) -> f64| {
            median(ours.iter().zip(bare).map(|(ours, bare)| of(ours) / of(bare)).collect())
        };
        cells.push(format!("{:.2}", ratio(Measured::rate)));
        cells.push(format!("{:.2}", ratio(Measured::mean_micros)));
        Self(cells)
    }

    fn start(store: &str, tasks: usize, what: &str, loads: &[Measured]) -> Vec<String> {
        let middle = |of: fn(&Measured) -> f64| median(loads.iter().map(of).collect());
        vec![
            store.to_owned(),
            tasks.to_string(),
            what.to_owned(),
            format!("{:.0}", middle(Measured::rate)),
            format!("{:.0}", middle(|load| load.micros.value_at_quantile(0.5) as f64)),
            format!("{:.0}", middle(|load| load.micros.value_at_quantile(0.99) as f64)),
            cpu(loads, |cpu| Some(cpu.clients)),
            cpu(loads, |cpu| cpu.server),
        ]
    }
}

/// Average processor time per round over all turns, in microseconds.
fn cpu(loads: &[Measured], of: fn(&Cpu) -> Option<Duration>) -> String {
    let spent: Option<Duration> = loads.iter().map(|load| of(&load.cpu)).sum();
    let count: u64 = loads.iter().map(|load| load.count).sum();
    spent.map(|spent| format!("{:.1}", spent.as_micros() as f64 / count as f64)).unwrap_or_default()
}
