//! Histories that are written, read and checked.

mod lines;
mod planted;
mod story;
