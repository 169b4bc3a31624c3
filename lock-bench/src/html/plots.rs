//! The drawings of a preset.

use lock_report::{BarSeries, Drawing, Lane, Span, State, TailRow, Timeline, figure};
use maud::{Markup, html};

use crate::{
    Quantiles, Row, Section, Turn,
    words::{median, named},
};

/// The rows of a drawing's data that are shown.
pub(super) const SHOWN: usize = 24;

pub(super) fn all(section: &Section) -> Markup {
    let drawn: Vec<_> = if section.is_outage() {
        handovers(section, "From the kill to the next grant").into_iter().collect()
    } else {
        let mut drawn = rates(section);
        drawn.extend(tails(section, "How long an acquire takes", |row| Some(&row.figures.acquire)));
        drawn.extend(handovers(section, "From a release to the next grant"));
        drawn
    };
    let seconds = section.rows.iter().filter_map(second);
    let id = |kind: &str, place: usize| format!("{}-{kind}{place}", section.preset);
    html! {
        div.plots {
            @for (place, (title, drawing)) in drawn.iter().enumerate() {
                (figure(title, drawing, &id("p", place), SHOWN))
            }
        }
        @for (place, (title, drawing)) in seconds.enumerate() {
            @if place == 0 { (lock_report::key()) }
            (figure(&title, &drawing, &id("t", place), SHOWN))
        }
    }
}

/// The rates of each store's contenders. Stores have drawings of their own: beside memory, a bar of
/// any server would have no length.
fn rates(section: &Section) -> Vec<(String, Drawing)> {
    let mut stores: Vec<&str> = section.rows.iter().map(|row| &*row.store).collect();
    stores.dedup();
    let of = |store: &str| {
        let rows = section.rows.iter().filter(|row| row.store == store);
        let named = rows.map(|row| {
            let rate = median(&row.figures.rate).unwrap_or(f64::NAN);
            (named(row), rate)
        });
        let (labels, values) = named.unzip();
        let series = vec![BarSeries { name: "acquisitions per second".into(), values }];
        let title = format!("{store}: acquisitions per second");
        (title, Drawing::Bars { y: "acquisitions per second".into(), labels, series })
    };
    stores.into_iter().map(of).collect()
}

fn handovers(section: &Section, title: &str) -> Option<(String, Drawing)> {
    tails(section, title, |row| row.figures.handover.as_ref())
}

/// The times of the contenders that can wait.
fn tails(
    section: &Section,
    title: &str,
    times: impl Fn(&Row) -> Option<&Quantiles>,
) -> Option<(String, Drawing)> {
    let waiting = section.rows.iter().filter(|row| row.role.waits());
    let rows = waiting.filter_map(|row| {
        let times = times(row)?;
        let [p50, p99, p999, max] = [&times.p50, &times.p99, &times.p999, &times.max].map(median);
        let name = format!("{}, {}", row.store, row.contender);
        Some(TailRow { name, quantiles: [p50?, p99?, p999?, max?] })
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| (title.into(), Drawing::Tails { y: "µs".into(), rows }))
}

/// The hand-overs of at most a second, a lane per worker.
fn second(row: &Row) -> Option<(String, Drawing)> {
    let mut turns = row.second.clone();
    turns.sort_by_key(|turn| turn.granted);
    let start = turns.first()?.granted;
    let until = ms(turns.iter().map(|turn| turn.released).max()?, start);
    let mut workers: Vec<u32> = turns.iter().map(|turn| turn.worker).collect();
    workers.sort_unstable();
    workers.dedup();
    let lanes = workers.into_iter().map(|worker| {
        let own = turns.iter().filter(|turn| turn.worker == worker);
        let spans = own.flat_map(|turn| spans(turn, start)).collect();
        Lane { client: format!("worker {worker}"), spans, marks: Vec::new() }
    });
    let lanes = lanes.collect();
    let title = format!("{}, {}: {} hand-overs in a row", row.store, row.contender, turns.len());
    let timeline = Timeline { lanes, until, ..Timeline::default() };
    Some((title, Drawing::Timeline(timeline)))
}

fn ms(at: u64, start: u64) -> f64 {
    at.saturating_sub(start) as f64 / 1e6
}

fn spans(turn: &Turn, start: u64) -> [Span; 3] {
    let span = |state, from: u64, until: u64| Span {
        state,
        from: ms(from, start),
        until: ms(until, start),
        token: turn.token.filter(|_| state == State::Holds),
        name: turn.name.to_string(),
    };
    [
        span(State::Waits, turn.asked, turn.granted),
        span(State::Holds, turn.granted, turn.releasing),
        span(State::Past, turn.releasing, turn.released),
    ]
}
