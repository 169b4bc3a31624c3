//! Drawings as SVG, each with a table of its data.
//!
//! The SVG is written here, not by a plotting crate. Its colours are classes from the page's style
//! for light, dark and print. Its patterns are shared, and it stays small.

mod axis;
mod bars;
mod clock;
mod frame;
mod lines;
mod spread;
mod table;
mod timeline;

pub(super) use self::{frame::patterns, timeline::key};

use maud::{Markup, html};

use crate::{Drawing, Plot, html::Detail};

/// A drawing with its caption and its table. The id is unique on the page.
pub(super) fn figure(plot: &Plot, id: &str, detail: Detail) -> Markup {
    let wide = matches!(plot.drawing, Drawing::Timeline(_));
    html! {
        figure.plot.wide[wide] {
            figcaption { (plot.title) }
            @match &plot.drawing {
                Drawing::Lines { x, y, log, series } => {
                    (lines::draw(&plot.title, id, (x, y), *log, series))
                }
                Drawing::Bars { y, labels, series } => {
                    (bars::draw(&plot.title, id, y, labels, series))
                }
                Drawing::Spread { y, rows } => (spread::draw(&plot.title, id, y, rows)),
                Drawing::Timeline(timeline) => (timeline::draw(&plot.title, id, timeline)),
            }
            details.data {
                summary { "The same as a table" }
                (table::of(&plot.drawing, detail.rows))
            }
        }
    }
}
