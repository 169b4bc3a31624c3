//! Shared parts of the drawings: the outer element, patterns, grid lines and keys of colours.

use maud::{Markup, PreEscaped, html};

use crate::words::{at, number};

use super::axis::Axis;

/// Number of colours and patterns.
const STYLES: usize = 6;

/// Returns the style of a series by its number.
pub(super) fn style(number: usize) -> String {
    format!("s{}", number % STYLES)
}

pub(super) fn image(
    title: &str,
    told: &str,
    id: &str,
    size: (f64, f64),
    content: &Markup,
) -> Markup {
    let (width, height) = (at(size.0), at(size.1));
    html! {
        div.canvas tabindex="0" role="group" aria-label="Drawing" {
            svg viewBox={ "0 0 " (width) " " (height) } role="img"
                aria-labelledby={ (id) "-t " (id) "-d" } {
                title id={ (id) "-t" } { (title) }
                desc id={ (id) "-d" } { (told) }
                (content)
            }
        }
    }
}

/// The patterns that distinguish bars without colours, once per page.
pub(crate) fn patterns() -> Markup {
    // Lines in the page's background colour, visible on every other colour.
    PreEscaped(
        "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
         <pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><path class=\"ink\" d=\"M0 0v6\"/></pattern>\
         <pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
         <circle class=\"dot\" cx=\"2\" cy=\"2\" r=\"1\"/></pattern>\
         <pattern id=\"p1\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><path class=\"ground\" d=\"M0 0v6\"/></pattern>\
         <pattern id=\"p2\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <circle class=\"hole\" cx=\"3\" cy=\"3\" r=\"1.4\"/></pattern>\
         <pattern id=\"p3\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(-45)\"><path class=\"ground\" d=\"M0 0v6\"/></pattern>\
         <pattern id=\"p4\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <path class=\"ground\" d=\"M0 0v6\"/></pattern>\
         <pattern id=\"p5\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <path class=\"ground\" d=\"M0 0h6\"/></pattern>\
         </defs></svg>"
            .to_owned(),
    )
}

/// The lines and numbers of a horizontal axis, from `top` to `bottom`.
pub(super) fn below(axis: &Axis, top: f64, bottom: f64) -> Markup {
    html! {
        @for tick in axis.ticks() {
            @let x = at(axis.place(tick));
            path.grid d={ "M" (x) " " (at(top)) "V" (at(bottom)) } {}
            text.tick.mid x=(x) y=(at(bottom + 15.0)) { (number(tick)) }
        }
    }
}

/// The lines and numbers of a vertical axis, from `left` to `right`.
pub(super) fn beside(axis: &Axis, left: f64, right: f64) -> Markup {
    html! {
        @for tick in axis.ticks() {
            @let y = axis.place(tick);
            path.grid d={ "M" (at(left)) " " (at(y)) "H" (at(right)) } {}
            text.tick.end x=(at(left - 6.0)) y=(at(y + 4.0)) { (number(tick)) }
        }
    }
}

/// The key: the colour and the pattern of each series.
pub(super) fn key<'a>(names: impl Iterator<Item = &'a str>) -> Markup {
    html! {
        ul.key {
            @for (number, name) in names.enumerate() {
                li {
                    svg viewBox="0 0 16 12" aria-hidden="true" { (block(number, (0.0, 0.0), (16.0, 12.0))) }
                    (name)
                }
            }
        }
    }
}

/// A filled block of a series.
pub(super) fn block(number: usize, place: (f64, f64), size: (f64, f64)) -> Markup {
    let path =
        format!("M{} {}h{}v{}h-{}z", at(place.0), at(place.1), at(size.0), at(size.1), at(size.0));
    let pattern = number % STYLES;
    html! {
        path class={ "bar " (style(number)) } d=(path) {}
        @if pattern > 0 { path.over fill={ "url(#p" (pattern) ")" } d=(path) {} }
    }
}
