//! Points with numeric x values, joined by lines.

use maud::{Markup, html};

use crate::{Series, words::at};

use super::{axis::Axis, frame};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 426.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 250.0;
/// A line with more points than this has no marks.
const POINTS: usize = 40;
/// Number of dash patterns. Together with the colours they are enough for 30 lines.
const DASHES: usize = 5;

pub(super) fn draw(
    title: &str,
    id: &str,
    (x, y): (&str, &str),
    log: bool,
    series: &[Series],
) -> Markup {
    let points = series.iter().flat_map(|one| one.points.iter().copied());
    let below = Axis::over(points.clone().map(|point| point.0), (LEFT, RIGHT), log);
    let beside = Axis::over(points.map(|point| point.1), (BOTTOM, TOP), log);
    let content = html! {
        (frame::below(&below, TOP, BOTTOM))
        (frame::beside(&beside, LEFT, RIGHT))
        text.axis.mid x=(at((LEFT + RIGHT) / 2.0)) y=(at(BOTTOM + 36.0)) { (x) }
        text.axis x="4" y="14" { (y) }
        @for (number, one) in series.iter().enumerate() {
            (line(number, one, &below, &beside))
        }
    };
    let names: Vec<_> = series.iter().map(|one| &*one.name).collect();
    let scale = if log { " on logarithmic axes" } else { "" };
    let told = format!("Lines of {y} over {x}{scale}: {}.", names.join(", "));
    html! {
        (frame::image(title, &told, id, (WIDTH, HEIGHT), &content))
        (key(series))
    }
}

fn line(number: usize, series: &Series, below: &Axis, beside: &Axis) -> Markup {
    let sound = series.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    let mut points: Vec<_> = sound.copied().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places: Vec<_> = points.iter().map(|(x, y)| (below.place(*x), beside.place(*y))).collect();
    let texts: Vec<_> = places.iter().map(|(x, y)| format!("{} {}", at(*x), at(*y))).collect();
    let style = frame::style(number);
    html! {
        path class={ "line " (style) " d" (number % DASHES) } d={ "M" (texts.join("L")) } {}
        @if places.len() <= POINTS {
            path class={ "point " (style) } d=(places.iter().map(|at| mark(number, *at)).collect::<String>()) {}
        }
    }
}

/// A mark with the series' shape: square, diamond, triangle.
fn mark(number: usize, (x, y): (f64, f64)) -> String {
    let (x, y) = (at(x), at(y));
    match number % 3 {
        0 => format!("M{x} {y}m-3-3h6v6h-6z"),
        1 => format!("M{x} {y}m0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z"),
        _ => format!("M{x} {y}m0-4.5l4.5 8h-9z"),
    }
}

fn key(series: &[Series]) -> Markup {
    html! {
        ul.key {
            @for (number, one) in series.iter().enumerate() {
                @let style = frame::style(number);
                li {
                    svg viewBox="0 0 24 12" aria-hidden="true" {
                        path class={ "line " (style) " d" (number % DASHES) } d="M0 6H24" {}
                        path class={ "point " (style) } d=(mark(number, (12.0, 6.0))) {}
                    }
                    (one.name)
                }
            }
        }
    }
}
