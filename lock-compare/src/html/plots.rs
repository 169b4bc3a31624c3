//! The drawings of outcomes.

use lock_report::figure as drawn;
use maud::Markup;

use crate::Plot;

use super::Detail;

pub(super) use lock_report::key;

/// A drawing with its caption and its table. The id is unique on the page.
pub(super) fn figure(plot: &Plot, id: &str, detail: Detail) -> Markup {
    drawn(&plot.title, &plot.drawing, id, detail.rows)
}
