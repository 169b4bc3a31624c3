//! A report as large as the whole comparison, for the layout: it says nothing about any store.

use lock_compare::{Report, Store, Verdict};

const TITLES: [&str; 4] = [
    "Mutual exclusion",
    "A bare DEL unlocks for others",
    "A waiter that gives up only leaves the queue, and order stays",
    "The session's TTL is 60 s by default",
];

/// The cells of a report over and over, for 44 claims and 7 stores, with every verdict.
pub fn repeated(report: &Report) -> Report {
    let mut full = report.clone();
    full.stores = Store::ALL.to_vec();
    full.rows = (1..=44).map(|number| row(report, number)).collect();
    full.missing = vec!["a layout: nothing here was measured".into()];
    full
}

fn row(report: &Report, number: u8) -> lock_compare::Row {
    let place = usize::from(number);
    let mut row = report.rows[place % report.rows.len()].clone();
    row.claim.number = number;
    row.claim.title = TITLES[place % TITLES.len()].into();
    let cells = row.cells.clone();
    let cell = |(column, store): (usize, Store)| {
        let mut cell = cells[column % cells.len()].clone();
        cell.store = store;
        cell.outcome.verdict = Verdict::ALL[place * (column + 1) % 11 % Verdict::ALL.len()];
        cell
    };
    row.cells = Store::ALL.into_iter().enumerate().map(cell).collect();
    row
}
