//! The data of a drawing as a table.

use maud::{Markup, html};

use crate::{
    BarSeries, Drawing, Series, SpreadRow, State, TailRow, Timeline,
    words::{number, time},
};

/// The first `most` rows. The last line tells how many are left out.
pub(super) fn of(drawing: &Drawing, most: usize) -> Markup {
    let (head, rows) = match drawing {
        Drawing::Lines { x, y, series, .. } => lines(x, y, series),
        Drawing::Bars { labels, series, .. } => bars(labels, series),
        Drawing::Spread { rows, .. } => spread(rows),
        Drawing::Tails { rows, .. } => tails(rows),
        Drawing::Timeline(timeline) => timeline_rows(timeline),
    };
    html! {
        div.scroll tabindex="0" role="group" aria-label="Data" {
            table.plain {
                thead { tr { @for name in &head { th scope="col" { (name) } } } }
                tbody { @for texts in rows.iter().take(most) { (row(texts)) } }
            }
        }
        @if rows.len() > most { p.note { "Left out: " (rows.len() - most) " more." } }
    }
}

fn row(texts: &[String]) -> Markup {
    html! {
        tr {
            @for (column, text) in texts.iter().enumerate() {
                @if column == 0 { th scope="row" { (text) } }
                @else { td { (text) } }
            }
        }
    }
}

type Table = (Vec<String>, Vec<Vec<String>>);

fn lines(x: &str, y: &str, series: &[Series]) -> Table {
    let rows = series.iter().flat_map(|one| {
        let points = one.points.iter();
        points.map(|(x, y)| vec![one.name.clone(), number(*x), number(*y)])
    });
    (vec!["line".into(), x.into(), y.into()], rows.collect())
}

fn bars(labels: &[String], series: &[BarSeries]) -> Table {
    let head = [String::new()].into_iter().chain(series.iter().map(|one| one.name.clone()));
    let value = |one: &BarSeries, place: usize| match one.values.get(place) {
        Some(value) => number(*value),
        None => "–".into(),
    };
    let rows = labels.iter().enumerate().map(|(place, label)| {
        let values = series.iter().map(|one| value(one, place));
        [label.clone()].into_iter().chain(values).collect()
    });
    (head.collect(), rows.collect())
}

fn spread(rows: &[SpreadRow]) -> Table {
    let head = ["", "5 %", "25 %", "50 %", "75 %", "95 %", "99 %"];
    quantiles(&head, rows.iter().map(|row| (&row.name, row.quantiles)))
}

fn tails(rows: &[TailRow]) -> Table {
    let head = ["", "50 %", "99 %", "99.9 %", "slowest"];
    quantiles(&head, rows.iter().map(|row| (&row.name, row.quantiles)))
}

fn quantiles<'a, const N: usize>(
    head: &[&str],
    rows: impl Iterator<Item = (&'a String, [f64; N])>,
) -> Table {
    let rows = rows
        .map(|(name, quantiles)| [name.clone()].into_iter().chain(quantiles.map(number)).collect());
    (head.iter().copied().map(String::from).collect(), rows.collect())
}

fn words(state: State) -> &'static str {
    match state {
        State::Waits => "waits",
        State::Holds => "holds",
        State::Past => "holds no more, or may not",
    }
}

fn timeline_rows(timeline: &Timeline) -> Table {
    let head = ["client", "what", "from", "until", "token"].map(String::from);
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for lane in &timeline.lanes {
        for span in &lane.spans {
            let token = span.token.map(|token| token.to_string()).unwrap_or_default();
            let (what, from, until) = (words(span.state), time(span.from), time(span.until));
            rows.push((span.from, vec![lane.client.clone(), what.into(), from, until, token]));
        }
        for mark in &lane.marks {
            let (at, none) = (time(mark.at), String::new);
            rows.push((mark.at, vec![lane.client.clone(), mark.what.clone(), at, none(), none()]));
        }
    }
    for fault in &timeline.faults {
        let until = fault.until.map_or_else(|| "not healed".into(), time);
        let row = vec!["fault".into(), fault.what.clone(), time(fault.from), until, String::new()];
        rows.push((fault.from, row));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    (head.to_vec(), rows.into_iter().map(|(_, row)| row).collect())
}
