//! A bar per label and series, from left to right.

use maud::{Markup, html};

use crate::{
    BarSeries,
    words::{at, number},
};

use super::{axis::Axis, frame};

const WIDTH: f64 = 440.0;
const LEFT: f64 = 8.0;
/// Room for a number after the longest bar.
const RIGHT: f64 = 375.0;
const LABEL: f64 = 20.0;
const BAR: f64 = 18.0;
const GAP: f64 = 10.0;

pub(super) fn draw(
    title: &str,
    id: &str,
    y: &str,
    labels: &[String],
    series: &[BarSeries],
) -> Markup {
    let values = series.iter().flat_map(|one| one.values.iter().copied());
    let axis = Axis::over(values, (LEFT, RIGHT), false);
    let group = LABEL + BAR * series.len() as f64 + GAP;
    let bottom = group * labels.len() as f64;
    let content = html! {
        (frame::below(&axis, 0.0, bottom))
        text.axis.mid x=(at(WIDTH / 2.0)) y=(at(bottom + 34.0)) { (y) }
        @for (place, label) in labels.iter().enumerate() {
            @let top = group * place as f64;
            text.label x=(at(LEFT)) y=(at(top + 15.0)) { (label) }
            @for (number, one) in series.iter().enumerate() {
                @let top = top + LABEL + BAR * number as f64;
                (bar(&axis, number, top, one.values.get(place).copied()))
            }
        }
    };
    let told = told(y, labels, series);
    html! {
        (frame::image(title, &told, id, (WIDTH, bottom + 42.0), &content))
        @if series.len() > 1 { (frame::key(series.iter().map(|one| &*one.name))) }
    }
}

fn bar(axis: &Axis, series: usize, top: f64, value: Option<f64>) -> Markup {
    let Some(value) = value.filter(|value| value.is_finite()) else { return html! {} };
    let end = axis.place(value);
    html! {
        (frame::block(series, (LEFT, top), ((end - LEFT).max(1.0), BAR - 3.0)))
        text.value x=(at(end + 5.0)) y=(at(top + 12.0)) { (number(value)) }
    }
}

fn told(y: &str, labels: &[String], series: &[BarSeries]) -> String {
    let groups = labels.join(", ");
    let names: Vec<_> = series.iter().map(|one| &*one.name).collect();
    format!("Bars of {y} for {groups}; each: {}.", names.join(", "))
}
