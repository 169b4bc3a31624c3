//! Distributions, one below another.

use maud::{Markup, html};

use crate::{
    SpreadRow,
    words::{at, number},
};

use super::{axis::Axis, frame};

const WIDTH: f64 = 440.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 424.0;
const ROW: f64 = 44.0;
/// Above this ratio of the largest to the smallest value, the axis is logarithmic.
const WIDE: f64 = 30.0;

pub(super) fn draw(title: &str, id: &str, y: &str, rows: &[SpreadRow]) -> Markup {
    let values = rows.iter().flat_map(|row| row.quantiles);
    let sound = values.clone().filter(|value| *value > 0.0);
    let (least, most) =
        sound.fold((f64::INFINITY, 0.0f64), |(a, b), value| (a.min(value), b.max(value)));
    let log = most / least > WIDE;
    let axis = Axis::over(values, (LEFT, RIGHT), log);
    let bottom = ROW * rows.len() as f64;
    let content = html! {
        (frame::below(&axis, 0.0, bottom))
        text.axis.mid x=(at(WIDTH / 2.0)) y=(at(bottom + 34.0)) {
            (y) @if log { ", logarithmic" }
        }
        @for (place, row) in rows.iter().enumerate() { (one(&axis, ROW * place as f64, row)) }
    };
    let medians: Vec<_> = rows
        .iter()
        .map(|row| format!("{} has a median of {}", row.name, number(row.quantiles[2])))
        .collect();
    let told = format!("Distributions in {y}: {}.", medians.join("; "));
    html! {
        (frame::image(title, &told, id, (WIDTH, bottom + 42.0), &content))
        p.note { "Line: 5 to 95 %. Box: 25 to 75 %. Bar: the median. Diamond: 99 %." }
    }
}

fn one(axis: &Axis, top: f64, row: &SpreadRow) -> Markup {
    let [p5, p25, p50, p75, p95, p99] = row.quantiles.map(|value| axis.place(value));
    let middle = at(top + 30.0);
    html! {
        text.label x=(at(LEFT)) y=(at(top + 15.0)) {
            (row.name) ": " (number(row.quantiles[2]))
        }
        path.whisker d={ "M" (at(p5)) " " (middle) "H" (at(p95)) } {}
        path.bar.s0 d={ "M" (at(p25)) " " (at(top + 23.0)) "h" (at((p75 - p25).max(1.0))) "v14h-"
            (at((p75 - p25).max(1.0))) "z" } {}
        path.median d={ "M" (at(p50)) " " (at(top + 20.0)) "v20" } {}
        path.point.s1 d={ "M" (at(p99)) " " (middle) "m0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z" } {}
    }
}
