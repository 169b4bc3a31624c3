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
mod tails;
mod timeline;

pub use self::timeline::key;

pub(crate) use self::frame::patterns;

use maud::{Markup, html};

use crate::Drawing;

/// A drawing with its title as caption, and a table of its first `rows` rows. The id is unique on
/// the page.
pub fn figure(title: &str, drawing: &Drawing, id: &str, rows: usize) -> Markup {
    let wide = matches!(drawing, Drawing::Timeline(_));
    html! {
        figure.plot.wide[wide] {
            figcaption { (title) }
            @match drawing {
                Drawing::Lines { x, y, log, series } => {
                    (lines::draw(title, id, (x, y), *log, series))
                }
                Drawing::Bars { y, labels, series } => (bars::draw(title, id, y, labels, series)),
                Drawing::Spread { y, rows } => (spread::draw(title, id, y, rows)),
                Drawing::Tails { y, rows } => (tails::draw(title, id, y, rows)),
                Drawing::Timeline(timeline) => (timeline::draw(title, id, timeline)),
            }
            details.data {
                summary { "The same as a table" }
                (table::of(drawing, rows))
            }
        }
    }
}
