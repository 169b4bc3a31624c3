//! The slow ends of distributions, one below another.

use maud::{Markup, html};

use crate::{
    TailRow,
    words::{at, number},
};

use super::{axis::Axis, frame};

const WIDTH: f64 = 440.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 424.0;
const ROW: f64 = 40.0;

pub(super) fn draw(title: &str, id: &str, y: &str, rows: &[TailRow]) -> Markup {
    let axis = Axis::over(rows.iter().flat_map(|row| row.quantiles), (LEFT, RIGHT), true);
    let bottom = ROW * rows.len() as f64;
    let content = html! {
        (frame::below(&axis, 0.0, bottom))
        text.axis.mid x=(at(WIDTH / 2.0)) y=(at(bottom + 34.0)) { (y) ", logarithmic" }
        @for (place, row) in rows.iter().enumerate() { (one(&axis, ROW * place as f64, row)) }
    };
    let medians = rows.iter().map(|row| {
        let [half, .., slowest] = row.quantiles.map(number);
        format!("{} has a median of {half} and at most {slowest}", row.name)
    });
    let told =
        format!("Slow ends of distributions in {y}: {}.", medians.collect::<Vec<_>>().join("; "));
    html! {
        (frame::image(title, &told, id, (WIDTH, bottom + 42.0), &content))
        p.note { "Block: half are as fast. Line: 99 %. Diamond: 99.9 %. Bar: the slowest." }
    }
}

fn one(axis: &Axis, top: f64, row: &TailRow) -> Markup {
    let [p50, p99, p999, slowest] = row.quantiles.map(|value| axis.place(value));
    let middle = at(top + 27.0);
    html! {
        text.label x=(at(LEFT)) y=(at(top + 15.0)) {
            (row.name) ": " (number(row.quantiles[0]))
        }
        (frame::block(0, (LEFT, top + 21.0), ((p50 - LEFT).max(1.0), 12.0)))
        path.whisker d={ "M" (at(p50)) " " (middle) "H" (at(p99)) } {}
        path.point.s1 d={ "M" (at(p999)) " " (middle) "m0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z" } {}
        path.median d={ "M" (at(slowest)) " " (at(top + 20.0)) "v14" } {}
    }
}
