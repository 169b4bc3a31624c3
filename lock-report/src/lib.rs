//! What the reports of `lock-compare` and `lock-bench` share.
//!
//! - [`page`]: the frame of a self-contained page, with its style, its script and its rights.
//! - [`figure`]: a [`Drawing`] as SVG, with a table of its data.
//! - [`fill`], [`source`] and [`Document`]: pages of `docs/` with blocks that are generated from a report.
//! - [`Machine`] and [`versions`]: what figures depend on.

mod blocks;
#[cfg(feature = "browser")]
pub mod browser;
mod document;
mod drawing;
mod machine;
pub mod markdown;
mod page;
mod plots;
mod security;
mod timeline;
mod words;

pub use self::{
    blocks::fill,
    document::{Document, refresh, source},
    drawing::{BarSeries, Drawing, Series, SpreadRow, TailRow},
    machine::{Machine, versions},
    page::{command, origin, page, section},
    plots::{figure, key},
    timeline::{FaultSpan, Lane, Mark, Span, State, Timeline},
    words::number,
};
