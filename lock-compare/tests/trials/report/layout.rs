//! A report as large as the whole comparison, for the layout only: it has no real results.

use lock_compare::{
    BarSeries, Drawing, Plot, Report, Row, Series, SpreadRow, State, Store, Timeline, Topic,
    Verdict,
};

const TITLES: [&str; 4] = [
    "Mutual exclusion",
    "A bare DEL unlocks for others",
    "A waiter that gives up only leaves the queue, and order stays",
    "The session's TTL is 60 s by default",
];

/// Repeats the cells of a report for 44 claims and 7 stores, with every verdict.
pub fn repeated(report: &Report) -> Report {
    let mut full = report.clone();
    full.stores = Store::ALL.to_vec();
    full.rows = (1..=44).map(|number| row(report, number)).collect();
    full.missing = vec!["a layout: nothing here was measured".into()];
    full
}

fn row(report: &Report, number: u8) -> Row {
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

/// Adds every kind of drawing, made from the first claim's timeline: the wait of each client.
pub fn with_all_drawings(mut report: Report) -> Report {
    for outcome in report.rows[0].cells.iter_mut().map(|cell| &mut cell.outcome) {
        let Some(timeline) = outcome.sides[0].timeline.clone() else { continue };
        let drawings = [
            (Topic::Queue, lines(&timeline, false)),
            (Topic::Queue, lines(&timeline, true)),
            (Topic::Cost, bars(&timeline)),
            (Topic::Latency, spread(&timeline)),
        ];
        outcome.plots.extend(drawings.map(|(topic, drawing)| Plot {
            title: "The waits of a timeline".into(),
            topic: Some(topic),
            drawing,
        }));
    }
    report
}

fn waits(timeline: &Timeline) -> impl Iterator<Item = (String, Vec<f64>)> {
    timeline.lanes.iter().map(|lane| {
        let waits = lane.spans.iter().filter(|span| span.state == State::Waits);
        (lane.client.clone(), waits.map(|span| span.until - span.from).collect())
    })
}

fn lines(timeline: &Timeline, log: bool) -> Drawing {
    let series = waits(timeline).map(|(name, waits)| {
        let points = waits.into_iter().enumerate();
        let points = points.map(|(number, wait)| (number as f64 + 1.0, wait));
        Series { name, points: points.collect() }
    });
    let (x, y) = ("round".into(), "ms until granted".into());
    Drawing::Lines { x, y, log, series: series.collect() }
}

fn bars(timeline: &Timeline) -> Drawing {
    let (names, all): (Vec<_>, Vec<_>) = waits(timeline).take(4).unzip();
    let mean = |waits: &Vec<f64>| waits.iter().sum::<f64>() / waits.len() as f64;
    let longest = |waits: &Vec<f64>| waits.iter().copied().fold(0.0, f64::max);
    let series = vec![
        BarSeries { name: "mean".into(), values: all.iter().map(mean).collect() },
        BarSeries { name: "longest".into(), values: all.iter().map(longest).collect() },
    ];
    Drawing::Bars { y: "ms until granted".into(), labels: names, series }
}

fn spread(timeline: &Timeline) -> Drawing {
    let rows = waits(timeline).take(3).map(|(name, mut waits)| {
        waits.sort_by(f64::total_cmp);
        let quantile = |share: f64| waits[(share * (waits.len() - 1) as f64) as usize];
        SpreadRow { name, quantiles: [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].map(quantile) }
    });
    Drawing::Spread { y: "ms until granted".into(), rows: rows.collect() }
}
